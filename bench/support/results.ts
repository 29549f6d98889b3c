const part = '## Speed and cost\n';

/** Returns the page of results with a new text in the section of a group. */
export function sectionIn(page: string, name: string, text: string): string {
  const section = `### ${name}\n\n${text}\n`;
  const begin = page.indexOf(part) + part.length;
  if (begin < part.length) throw new Error(`the page has no part ${part.trim()}`);
  const end = endOf(page, begin, /^## /m);
  const at = page.indexOf(`### ${name}\n`, begin);
  if (at === -1 || at > end) return page.slice(0, end) + section + page.slice(end);
  return page.slice(0, at) + section + page.slice(endOf(page, at + '### '.length, /^##/m));
}

function endOf(page: string, from: number, next: RegExp): number {
  const found = page.slice(from).search(next);
  return found === -1 ? page.length : from + found;
}
