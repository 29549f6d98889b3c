import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/sources.js';

const maxWords = 30;
/** Maximum number of long sentences in all pages together. */
const maxLongSentences = 20;

/** Words that people search for when they need help. */
const searched = ['hang', 'stuck', 'slow', 'half', 'backup', 'downtime', 'priority', 'tools', 'embeddings'];

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
