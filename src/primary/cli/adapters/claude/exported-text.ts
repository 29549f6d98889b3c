import type { Message } from '../../contract/adapter.js';

/** Longest text that is compared with an export, in UTF-16 units: the comparison takes some milliseconds. */
const maxLength = 256 * 1024;

/**
 * Returns what the export of these messages must contain; null if an export cannot prove that they are left. The CLI
 * exports a conversation as its terminal would show it, with marks and line breaks of its own, so that only letters and
 * digits are compared. It shows images, documents and calls in words of its own.
 */
export function expectedExport(messages: readonly Message[]): string | null {
  let length = 0;
  const texts: string[] = [];
  for (const { role, text, images = [], calls = [], results = [] } of messages) {
    length += text.length;
    if (length > maxLength || images.length + calls.length + results.length > 0) return null;
    const shown = lettersIn(role === 'assistant' ? withoutLanguages(text) : text);
    if (shown === '') return null; // a message that shows nothing could also be missing
    texts.push(shown);
  }
  return texts.join('');
}

/** Whether the CLI has exported exactly the expected letters and digits; nothing at all if none are expected. */
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
