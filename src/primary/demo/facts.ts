import type { Heard, Rule } from './rule.js';
import { reflect } from './sentences.js';
import { cut, trimTail } from './text.js';

const named = /\b(?:my name is|my name's|call me|i am called|i'm called) (.+)$/i;
const introduced = /^(?:(?:hi|hello|hey)(?: there)? )?(?:i'm|i am) (.+)$/i;
/** A word, and the capitalised words after it. */
const name = /^["']?([^\s"(),;:<>]{1,40}(?: \p{Lu}[^\s"(),;:<>]{0,39}){0,2})/u;
const noName = /^(?:a|an|the|not|no|in|on|at|so|very|ok|fine|sorry|sad|happy|tired|here|back|sure|from)$/i;
const fact = /\bmy ([^,]{1,50}?) (is|are) (.+)$/i;
/** `my friend says you are …` tells nothing about a thing of theirs. */
const clause = /\b(?:i|you|he|she|it|we|they|me|that|says|said|told|thinks)\b/i;
const taste =
  /^(?:well |yes |no )?i (?:really |also )?(like|love|hate|prefer|live|work|study|speak|have|want|need) (.+)$/i;
const note = /^(?:please )?(?:remember|note|memori[sz]e|keep in mind)(?: that| this| the following)?:? (.+)$/i;

const askedNote = /\byou to remember|\b(?:should|do|did|can) you remember$|\bwhat (?:do|did) you remember\b/i;
const askedPrompt =
  /\bdid i (?:just |last )?(?:say|tell|ask|write)\b|\bmy (?:last|previous) (?:message|question|words)\b/i;
const askedAnswer = /\bdid you (?:just )?say\b|\b(?:say|repeat) (?:that|it)\b|\byour last answer\b/i;
const askedName = /\bwho am i\b|\bwho i am\b|\bwhat am i called\b|\b(?:remember|know) me\b/i;
const askedTaste = /\bdo i (like|love|hate|prefer|live|work|study|speak|have|want|need)\b/i;
const askedFact = /\bmy (.{1,60})$/i;
const askedThing = /\bwhat (?:is|was|are|were) (the .+)$/i;
const asking = /\b(?:whats?|what's|who|who's|which|where|know|remember|recall|tell|say|remind)\b/i;

const recallNote: Rule = ({ text, memory }) => {
  if (!askedNote.test(text)) return null;
  if (memory.note !== null) return `You asked me to remember: ${memory.note}.`;
  const newest = memory.newest();
  return newest === null ? 'You have not told me to remember anything yet.' : `I remember that ${reflect(newest)}.`;
};

const recallPrompt: Rule = ({ text, memory: { lastPrompt } }) => {
  if (!askedPrompt.test(text)) return null;
  return lastPrompt === null ? 'This is the first thing that you have said.' : `You said: ${lastPrompt}`;
};

const recallAnswer: Rule = ({ text, memory: { lastAnswer } }) => {
  if (!askedAnswer.test(text)) return null;
  return lastAnswer === null ? 'I have not said anything yet.' : `I said: ${lastAnswer}`;
};

const recallTaste: Rule = ({ text, memory }) => {
  const verb = askedTaste.exec(text)?.[1]?.toLowerCase();
  if (verb === undefined) return null;
  const told = memory.fact(`i ${verb}`);
  return told === null
    ? `You have not told me what you ${verb} yet.`
    : `You told me that you ${verb} ${reflect(told)}.`;
};

const recallFact: Rule = ({ text, memory }) => {
  const about = askedName.test(text) ? 'name' : aboutOf(askedFact.exec(text)?.[1] ?? '');
  if (about === '') return null;
  const told = memory.fact(`my ${about}`);
  if (told !== null) return `Your ${reflect(about)} ${reflectUnlessName(about, told)}.`;
  return asking.test(text)
    ? `You have not told me ${about === 'name' ? '' : 'about '}your ${reflect(about)} yet.`
    : null;
};

const recallThing: Rule = ({ text, memory }) => {
  const thing = askedThing.exec(text)?.[1]?.toLowerCase();
  if (thing === undefined || memory.note?.toLowerCase().includes(thing) !== true) return null;
  return `You asked me to remember: ${memory.note}.`;
};

const learnName: Rule = ({ text, memory }) => {
  const told = nameIn(named.exec(text)?.[1]) ?? introducedName(text);
  if (told === null) return null;
  const known = memory.name !== null;
  memory.keepName(told);
  return known ? `I will call you ${told}.` : `Nice to meet you, ${told}.`;
};

const learnFact: Rule = ({ text, memory }) => {
  const [, about, verb, told] = fact.exec(text) ?? [];
  if (about === undefined || told === undefined || clause.test(about)) return null;
  const value = `${verb} ${told.replace(/^(?:called|named) /, '')}`;
  memory.keep(`my ${aboutOf(about)}`, value);
  return `I will remember that your ${reflect(about)} ${reflect(value)}.`;
};

const learnTaste: Rule = ({ text, memory }) => {
  const [, verb, told] = taste.exec(text) ?? [];
  if (verb === undefined || told === undefined) return null;
  memory.keep(`i ${verb}`, told);
  return `I will remember that you ${verb.toLowerCase()} ${reflect(told)}.`;
};

const learnNote: Rule = ({ text, memory }) => {
  const told = note.exec(text)?.[1];
  if (told === undefined) return null;
  memory.keepNote(told);
  return `I will remember: ${cut(told, 200)}.`;
};

const recalls = [recallNote, recallPrompt, recallAnswer, recallTaste, recallFact, recallThing];
const learns = [learnName, learnFact, learnTaste, learnNote];

/** Questions are answered from memory, everything else may go into it. */
export const factRule: Rule = (heard) => firstOf(heard.question ? recalls : learns, heard);

export function firstOf(rules: readonly Rule[], heard: Heard): string | null {
  for (const rule of rules) {
    const answer = rule(heard);
    if (answer !== null) return answer;
  }
  return null;
}

function nameIn(words: string | undefined): string | null {
  const found = name.exec(words ?? '')?.[1];
  return found === undefined || noName.test(found) ? null : trimTail(found, '"\'.!');
}

/** `I am Ada`, but not `I am sad` and not `I am Ada's sister`. */
function introducedName(text: string): string | null {
  const words = introduced.exec(text)?.[1];
  return words !== undefined && /^\p{Lu}/u.test(words) && nameIn(words) === words ? words : null;
}

function reflectUnlessName(about: string, told: string): string {
  return about === 'name' ? told : reflect(told);
}

/** `dog's name`, `dog called` and `dog is, please` are all about the dog. */
function aboutOf(words: string): string {
  return words.replace(/ (?:is|are|was|called|named|again|please|now)\b.*$/i, '').replace(/(?:'s name|,)$/i, '');
}
