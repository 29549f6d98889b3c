import { calculate } from './arithmetic.js';
import { factRule } from './facts.js';
import { choose, type Rule } from './rule.js';

const identity = /\b(?:who|what)(?: exactly)? are you\b|\byour name\b|\b(?:which|what) model\b|\bintroduce yourself\b/i;
const kind = /\bare you (?:really |just |only )?(?:an? |the )?([a-z]+)/i;
const kinds =
  /^(?:demo|human|real|robot|bot|chatbot|ai|person|machine|computer|program|language|chatgpt|claude|eliza|alive)$/i;
const abilities = /\bwhat (?:can|else can) you do\b|^help\b|\bhow (?:does this|do you) work\b/i;
const wellBeing = /\bhow are you\b|\bhow do you do\b|\bhow is it going\b|\bhow's it going\b/i;
const greeting = /^(?:hi|hello|hey|howdy|greetings|good (?:morning|afternoon|evening|day)|hallo|bonjour|hola|ciao)\b/i;
const thanks = /\b(?:thanks|thank you|thx|merci|danke|gracias)\b/i;
const farewell = /^(?:bye|goodbye|good night|see you|farewell|ciao)\b/i;
const unknowable = /\b(?:what time|what day|the time|the date|what date|weather|news|today|tomorrow)\b/i;
const dictation =
  /^(?:please )?(?:say|repeat|(?:reply|answer|respond) with)(?: exactly| just| only)?:? ["']?(.+?)["']?$/i;

const sum: Rule = ({ text }) => calculate(text);

const dictated: Rule = ({ text }) => dictation.exec(text)?.[1] ?? null;

const whoIAm: Rule = ({ text, introduction }) =>
  identity.test(text) || kinds.test(kind.exec(text)?.[1] ?? '')
    ? `${introduction} Tell me about yourself, and ask me later what I know.`
    : null;

const whatICan: Rule = ({ text }) =>
  abilities.test(text)
    ? 'I can remember what you tell me (your name, a favourite thing, a number), do small sums, and ask questions back.'
    : null;

const howIAm: Rule = ({ text }) => (wellBeing.test(text) ? 'A demo is always well, thank you. How are you?' : null);

const greet: Rule = ({ text, memory: { name }, alone, turn }) => {
  if (!greeting.test(text)) return null;
  const hello = `Hello${turn > 0 ? ' again' : ''}${name === null ? '' : `, ${name}`}.`;
  if (!alone) return hello;
  return `${hello} ${name === null ? 'What is your name?' : 'What would you like to talk about?'}`;
};

const welcome: Rule = ({ text, memory: { name } }) =>
  thanks.test(text) ? `You are welcome${name === null ? '' : `, ${name}`}.` : null;

const partWays: Rule = ({ text, memory: { name } }) =>
  farewell.test(text) ? `Goodbye${name === null ? '' : `, ${name}`}.` : null;

const cannotKnow: Rule = ({ text, question, turn }) =>
  question && unknowable.test(text)
    ? choose(turn, [
        'I have no clock and no network, so I cannot know that.',
        'That is outside of this demo: it knows only what you tell it.',
      ])
    : null;

/** These know exactly what was said to them: all that apply are heard in the answer. */
export const preciseRules: readonly Rule[] = [
  sum,
  factRule,
  dictated,
  whoIAm,
  whatICan,
  howIAm,
  greet,
  welcome,
  partWays,
  cannotKnow,
];
