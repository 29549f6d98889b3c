import { choose, type Heard, type Rule } from './rule.js';
import { reflect } from './sentences.js';

type Reply = readonly [pattern: RegExp, ...answers: [string, ...string[]]];

/** `$1` stands for what the pattern caught, seen from the other side. The first that matches answers. */
const replies: readonly Reply[] = [
  [/\bi feel (.+)$/i, 'Why do you feel $1?', 'Do you often feel $1?', 'What else comes with feeling $1?'],
  [/\bi(?: am|'m) (?:sorry|afraid not)\b/i, 'There is nothing to be sorry for.', 'No harm done. Please go on.'],
  [/\bi(?: am|'m) (.+)$/i, 'How long have you been $1?', 'Do you enjoy being $1?', 'Why are you $1?'],
  [/\bi (?:can't|cannot|can not) (.+)$/i, 'What would it take for you to $1?', 'Why do you think that you cannot $1?'],
  [
    /\bi (?:think|believe|guess|suppose) (?:that )?(.+)$/i,
    'What makes you think that $1?',
    'How sure are you that $1?',
  ],
  [/\bi (?:dream|remember) (.+)$/i, 'How does it feel to think of $1?', 'Do you often think of $1?'],
  [/\bbecause (.+)$/i, 'Is that the only reason?', 'Would it be different if it were not that $1?'],
  [/\bwhy (?:don't|can't|won't) you (.+)$/i, 'A demo has its limits. What would change if I could $1?'],
  [/\b(?:can|could|will|would) you (.+)$/i, 'I am only a demo and cannot $1. What would you do with the answer?'],
  [/\byou(?: are|'re) (.+)$/i, 'What makes you think that I am $1?', 'Would it matter to you if I were not $1?'],
  [/\bi (\w+) you\b/i, 'You $1 me? I am only a demo, but go on.'],
  [/\b(mother|father|sister|brother|wife|husband|son|daughter|family|friend)s?\b/i, 'Tell me more about your $1.'],
  [/\b(computer|machine|program|software|robot)s?\b/i, 'Does it trouble you to talk about a $1 with a program?'],
  [/\bjoke\b/i, 'There are 10 kinds of people: those who can read binary, and those who cannot.'],
  [/^(?:yes|yeah|yep|sure|of course)\b/i, 'You seem quite certain.', 'I see. Please go on.'],
  [/^(?:no|nope|never)\b/i, 'Why not?', 'You sound very definite about that.'],
  [/\b(?:always|never|everyone|nobody)\b/i, 'Can you think of an exception?', 'Really without exception?'],
];

const questions: readonly [string, ...string[]] = [
  'I am only a demo and cannot know that. What do you think yourself?',
  'What makes you ask?',
  'Which answer would please you most?',
  'That is more than my few rules can tell. What comes to mind when you ask it?',
];

const remarks: readonly [string, ...string[]] = [
  'Please go on.',
  'Tell me more about that.',
  'What does that suggest to you?',
  'I see. How do you feel about it?',
  'Why do you say that just now?',
];

/** These guess: one of them is heard, and only where nothing precise could be said. */
export const elizaRule: Rule = (heard) => {
  for (const [pattern, ...answers] of replies) {
    const match = pattern.exec(heard.text);
    // A function, since a replacement text would have its dollar signs read.
    if (match !== null) return choose(heard.turn, answers).replace('$1', () => reflect(match[1] ?? ''));
  }
  return null;
};

/** Something to say to anything. */
export function goOn({ question, turn, memory }: Pick<Heard, 'question' | 'turn' | 'memory'>): string {
  const told = memory.newest();
  if (!question && told !== null && turn % 3 === 2)
    return `Earlier you said that ${reflect(told)}. Is this about that?`;
  return choose(turn, question ? questions : remarks);
}
