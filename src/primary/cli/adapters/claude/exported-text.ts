import type { Message } from '../../contract/adapter.js';

/** Longest text that is compared with an export, in UTF-16 units: the comparison takes some milliseconds. */
const maxLength = 128 * 1024;

/** Longest message of a user, in UTF-16 units, that the CLI exports without a gap. */
const maxQuestionLength = 10_000;

/**
 * Returns the letters and digits that the export of these messages must contain; null if an export cannot prove that they
 * are left. The CLI exports a conversation as its terminal would show it, with other marks and line breaks. It replaces
 * images, documents and calls by descriptions.
 */
export function expectedExport(messages: readonly Message[]): string | null {
  let length = 0;
  const texts: string[] = [];
  for (const { role, text, images = [], calls = [], results = [] } of messages) {
    length += text.length;
    if (length > maxLength || images.length + calls.length + results.length > 0) return null;
    if (role === 'user' && text.length > maxQuestionLength) return null;
    const shown = lettersIn(role === 'assistant' ? withoutLanguages(text) : text);
    if (shown === '') return null; // a message that shows nothing could also be missing
    texts.push(shown);
  }
  return texts.join('');
}

/** Whether the CLI has exported exactly the expected letters and digits. If none are expected, the export must be empty. */
export function isExportOf(exported: string, expected: string): boolean {
  if (expected === '') return exported === '';
  return exported.length <= 4 * maxLength && lettersIn(exported) === expected;
}

function lettersIn(text: string): string {
  return text.replace(/[^\p{L}\p{N}]+/gu, '');
}

/** Removes the languages of code blocks, which the CLI does not show. */
function withoutLanguages(markdown: string): string {
  return markdown.replace(/^(\s*(?:```|~~~))[^`\n]*$/gm, '$1');
}
