interface Memory {
  /** Facts by their subject: `dog` → `is Rex`. */
  readonly facts: Map<string, string>;
  note: string | null;
}

/** Reply to a sentence that matches the pattern. If it is null, the next rule is tried. */
type Rule = readonly [pattern: RegExp, reply: (memory: Memory, ...caught: string[]) => string | null];

const maxReplies = 3;
const greeting = /^\s{0,20}(?:hi|hello|hey)\b[\s,.!]{0,20}/i;
const borders = /(?<=[!?;])|\.\s|[\r\n]|(?:,| and|, and) (?=(?:my|i|i'm|what|who) )/i;
const asking = /\?$|^(?:please )?(?:what|who|where|which|why|how|when|do|does|did|is|are|can|could|will|tell me)\b/i;
const tail = /[\s.,!?;:]{1,20}$/;
const identity = /\b(?:who|what) are you\b|\byour name\b|\bare you (?:an? )?(?:human|real|person|robot|ai|chatgpt)\b/i;
const persona = /\b[Yy]ou(?: are|r name is) (\p{Lu}[\p{L}\d-]{0,39})/u;

const recalls: readonly Rule[] = [
  [identity, () => 'Tell me about yourself, and ask me later what I know.'],
  [/\b(?:who am i|remember me)$/iu, (memory) => recall(memory, 'name')],
  [/\bmy ((?:\S{1,40} ){0,3}\S{1,40})$/iu, recall],
  [/\bremember\b/iu, ({ note }) => `You asked me to remember: ${note ?? 'nothing yet'}.`],
  [/\b(the \S{1,40})$/iu, ({ note }, thing) => (note?.includes(thing) ? `You asked me to remember: ${note}.` : null)],
];

const learns: readonly Rule[] = [
  [/^(?:please )?remember(?: that| this)?:? (.{1,200})/iu, learnNote],
  [/\b[Mm]y name is (?!not )([^\s,;:"()<>]{1,40}(?: \p{Lu}[^\s,;:"()<>]{0,39}){0,2})/u, learnName],
  [/^[Ii](?: am|'m) (\p{Lu}[^\s,;:"()<>]{0,39}(?: \p{Lu}[^\s,;:"()<>]{0,39}){0,2})$/u, learnName],
  [/\bmy ((?:\S{1,40} ){0,2}?\S{1,40}) (is|are) (?:called )?(.{1,200})/iu, learnFact],
];

const reflections: readonly Rule[] = [
  [/\byou are (.{1,100})/iu, (_, what) => `What makes you think that I am ${reflect(what)}?`],
  [/\bi feel (.{1,100})/iu, (_, what) => `Why do you feel ${reflect(what)}?`],
  [/\bi(?: am|'m) (.{1,100})/iu, (_, what) => `How long have you been ${reflect(what)}?`],
  [/\bi ((?:like|love|want|need|hate) .{1,100})/iu, (_, what) => `Why do you ${reflect(what)}?`],
  [/\bi think (?:that )?(.{1,100})/iu, (_, what) => `Are you sure that ${reflect(what)}?`],
];

const remarks = ['Please go on.', 'Tell me more about that.', 'How do you feel about that?'];
const askBack = 'I am only a demo and cannot know that. What do you think?';
const mirror = Object.entries({ i: 'you', me: 'you', my: 'your', mine: 'yours', am: 'are', you: 'me', your: 'my' });
const mirrored: ReadonlyMap<string, string> = new Map(mirror);

/** Owns one conversation of the model `eliza`: the facts that the user has stated, and the number of turns. */
export class Eliza {
  readonly #memory: Memory = { facts: new Map(), note: null };
  #name = 'Eliza';
  #turn = 0;

  instruct(system: string): void {
    this.#name = persona.exec(beginningOf(system))?.[1] ?? this.#name;
  }

  answer(prompt: string): string {
    const input = beginningOf(prompt);
    const introduction = `I am ${this.#name}, a demo: a small program with a few fixed rules, not a language model. `;
    const hello = greeting.test(input) ? 'Hello. ' : '';
    const reply = this.#reply(sentencesOf(input.replace(greeting, '')));
    const isIntroduced = this.#turn > 0 && !identity.test(input);
    this.#turn += 1;
    return `${isIntroduced ? '' : introduction}${hello}${reply}`;
  }

  #reply(sentences: readonly string[]): string {
    const replies = new Set(sentences.map((sentence) => this.#replyTo(sentence)).filter((reply) => reply !== null));
    if (replies.size > 0) return [...replies].slice(0, maxReplies).join(' ');
    if (asking.test(sentences.at(-1) ?? '')) return askBack;
    return this.#turn === 0 ? 'What is your name?' : (remarks[this.#turn % remarks.length] ?? '');
  }

  #replyTo(sentence: string): string | null {
    const rules = asking.test(sentence) ? recalls : learns;
    return firstOf([...rules, ...reflections], this.#memory, sentence.replace(tail, ''));
  }
}

/** Returns the first 2,000 characters. Rules search no further, so that no text can take them long. */
function beginningOf(text: string): string {
  return /^.{0,2000}/su.exec(text)?.[0] ?? '';
}

function sentencesOf(text: string): readonly string[] {
  const parts = text.replaceAll('’', "'").split(borders);
  return parts.map((part) => part.replace(/\s+/g, ' ').trim()).filter((part) => part !== '');
}

function firstOf(rules: readonly Rule[], memory: Memory, text: string): string | null {
  for (const [pattern, reply] of rules) {
    const found = pattern.exec(text);
    const answer = found === null ? null : reply(memory, ...found.slice(1));
    if (answer !== null) return answer;
  }
  return null;
}

function learnNote(memory: Memory, note: string): string {
  memory.note = reflect(note);
  return firstOf(learns, memory, note) ?? `I will remember: ${memory.note}.`;
}

function learnName({ facts }: Memory, name: string): string {
  facts.set('name', `is ${name}`);
  return `Nice to meet you, ${name}.`;
}

function learnFact({ facts }: Memory, about: string, verb: string, what: string): string {
  const fact = `${verb} ${reflect(what)}`;
  facts.set(subjectOf(about), fact);
  return `I will remember that your ${about} ${fact}.`;
}

function recall({ facts }: Memory, words: string): string {
  const about = subjectOf(words);
  return facts.has(about) ? `Your ${about} ${facts.get(about)}.` : `You have not told me your ${about} yet.`;
}

/** Normalizes a subject: `dog's name`, `dog called` and `dog is` all become `dog`. */
function subjectOf(words: string): string {
  const about = words.toLowerCase().replace(/(?:'s name| is| are| called| again)$/, '');
  return about.replace('favourite', 'favorite').replace('colour', 'color');
}

/** Swaps first and second person: `my dog` becomes `your dog`. */
function reflect(words: string): string {
  return words.replace(/[a-z']+/gi, (word) => mirrored.get(word.toLowerCase()) ?? word);
}
