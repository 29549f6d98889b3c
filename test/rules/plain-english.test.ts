import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readSources, root } from '../support/documents/sources.js';

const maxWords = 30;
/** Maximum number of long sentences in all pages together. */
const maxLongSentences = 20;

/** Words that people search for when they need help. */
const searched = [
  ...['hang', 'stuck', 'slow', 'half', 'backup', 'downtime', 'priority', 'tools', 'embeddings'],
  ...['privacy', 'retention', 'log level', 'OIDC'],
];

function textOf(page: string): string {
  return readFileSync(join(root, 'docs', page), 'utf8');
}

/**
 * Returns the sentences of a page. Code in a line counts as one word; a table cell and a list item are separate
 * sentences.
 */
function sentencesOf(text: string): string[] {
  const prose = text
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .replaceAll(/`[^`\n]*`/g, 'code')
    .replaceAll(/\]\([^)\s]*\)/g, ']');
  const pieces = prose.split('\n').flatMap((line) => line.split(' | '));
  return pieces.flatMap((piece) => piece.split(/(?<=[.?!][)*"”]*)\s+/));
}

function wordsOf(sentence: string): number {
  return sentence.match(/[\p{L}\p{N}][\p{L}\p{N}'’.,-]*/gu)?.length ?? 0;
}

it('Sentences are counted correctly', () => {
  const text =
    'One `a b c` two. Three [four](five-six)\n- seven (eight.) nine\n| ten | eleven: twelve |\n```\nx y\n```\n';
  expect(sentencesOf(text).map(wordsOf)).toEqual([3, 2, 2, 1, 1, 2, 0, 0]);
});

it(`The pages have at most ${maxLongSentences} sentences of more than ${maxWords} words`, () => {
  const pages = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'));
  const long = pages.flatMap((page) =>
    sentencesOf(textOf(page)).flatMap((each) => (wordsOf(each) > maxWords ? [`${page}: ${each}`] : [])),
  );
  expect(long.slice(maxLongSentences)).toEqual([]);
});

it.each(searched)('A search for "%s" finds a task or an error', (word) => {
  const found = ['tasks.md', 'errors.md'].filter((page) => new RegExp(`\\b${word}`, 'i').test(textOf(page)));
  expect(found).not.toEqual([]);
});

/** Words of internal notes, which readers of the API or the manual do not know. */
const dialect =
  /\bwhere (?:it|there|the|a|no|they|API|tools|`)|\b(?:whoever|whichever|is told|what has become of|is there still)\b/i;

it.each(['docs/openapi.yaml', 'man/prompt-relay.1'])('%s uses ordinary words', (page) => {
  const lines = readFileSync(join(root, page), 'utf8').split('\n');
  expect(lines.filter((line) => dialect.test(line))).toEqual([]);
});

/** First words of sentences whose subject is only in the sentence or the code before. */
const leaningStart =
  /^(?:it|its|they|their|those|these|this|that|the (?:same|others?|rest|ones?)|one|ones|another|both|neither|of|as|what|whatever|where|who|whose|whom|which|such|so|else|also|again|nothing|none|nobody|all (?:that|of it))\b/i;

/** Conditions written as places, and private phrases. */
const privatePhrase =
  /\b(?:where (?:it|there|that|one|they|this|none|nothing|not)|(?:null|undefined|nothing|none|empty) (?:where|without)|(?:go(?:es)?|going|gone) on|goes back|comes? back|gives? way|in vain|by (?:right|itself)|for want of|beside (?:it|them|that|this|the)|who(?:m|so)?ever|whatever becomes|meanwhile|(?:is|are|was|were) (?:told|asked|heard|said|left alone|gone)|tells?|told|takes? (?:nothing|no more)|those (?:that|of|who|which)|of (?:its|their) own)\b/gi;

/** Names of values that are a bag (`ofUser`) or a bare participle or adverb. */
const vagueName =
  /\b(?:const|let|readonly)\s+\{?\s*of[A-Z]\w*|(?:\b(?:const|let|get|set|function|readonly|async|static)\s+|^\s+#|[#])(?:took|saw|told|heard|said|asked|kept|held|given|gone|meant|spoke|felt|worked|later|soon|usual|own|others|rest|nowhere|mine|elsewhere|beside|wishes)\b(?=\s*[(:=;,)<])/gm;

function commentsOf(text: string): string[] {
  const found = text.matchAll(/\/\*\*?[\s\S]*?\*\/|(?<=^|[\s;{})\],])\/\/[^\n]*(?:\n[ \t]*\/\/[^\n]*)*/g);
  return [...found]
    .map(([comment]) => comment.replaceAll(/^\s*(?:\/\*\*?|\*\/|\*|\/\/)|\*\/$/gm, ' ').replaceAll(/\s+/g, ' '))
    .map((comment) => comment.trim())
    .filter((comment) => comment !== '' && !/^(?:biome|stryker)/.test(comment));
}

function countOf(pattern: RegExp, texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + (text.match(pattern)?.length ?? 0), 0);
}

describe('The source code', () => {
  const texts = readSources('src').map(({ text }) => text);
  const comments = texts.flatMap(commentsOf);

  it('has few comments whose sentences lack a subject: at most 8 in 100', () => {
    const sentences = comments.flatMap((comment) => comment.replaceAll(/`[^`]*`/g, 'X').split(/(?<=[.!?:;])\s+/));
    const leaning = sentences.filter((sentence) => leaningStart.test(sentence));
    expect(sentences.length).toBeGreaterThan(5000);
    expect(leaning.length / sentences.length).toBeLessThanOrEqual(0.08);
  });

  it('has few private phrases in its comments: at most 1.5 in 1,000 words', () => {
    const words = comments.reduce((sum, comment) => sum + comment.split(' ').length, 0);
    expect(countOf(privatePhrase, comments) / words).toBeLessThanOrEqual(0.0015);
  });

  it('has few names without a noun or verb: at most 0.3 in 1,000 lines', () => {
    const lines = texts.reduce((sum, text) => sum + text.split('\n').length, 0);
    expect(countOf(vagueName, texts) / lines).toBeLessThanOrEqual(0.0003);
  });

  it('is measured by patterns that find what they are for', () => {
    const [comment = ''] = commentsOf('/** Those that are told of it. */\n');
    expect([leaningStart.test(comment), countOf(privatePhrase, [comment])]).toEqual([true, 2]);
    const code = 'const ofUser = 1;\n  #said = 2;\nconst answer = 3;\nfunction took() {}\n';
    expect(countOf(vagueName, [code])).toBe(3);
  });
});
