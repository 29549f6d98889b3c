/** Words that the newest section of CHANGELOG.md may have, with its heading. */
export const maxNewsWords = 1200;

const unreleased = /^(\[[^\]]+\]) – not yet released$/m;

/** Returns the newest section of the changelog, without the `## ` of its heading. */
export function newestSection(changelog: string): string {
  const [, newest = ''] = changelog.split(/^## /m);
  return newest.trim();
}

export function countWords(text: string): number {
  return text.split(/\s+/).length;
}

/** Returns why the newest section cannot be released; an empty list if it can. */
export function newsFaults(changelog: string): string[] {
  const newest = newestSection(changelog);
  const [heading = '', ...lines] = newest.split('\n');
  if (!unreleased.test(heading)) return ['CHANGELOG.md does not begin with a section "not yet released"'];
  const faults: string[] = [];
  const isEmpty = lines.every((line) => line.trim() === '' || line.startsWith('#'));
  if (isEmpty) faults.push('the section "not yet released" of CHANGELOG.md is empty');
  const words = countWords(newest);
  if (words > maxNewsWords)
    faults.push(`the section "not yet released" of CHANGELOG.md has ${words} words, and may have ${maxNewsWords}`);
  return faults;
}

/** Gives the newest section its version and its date, such as 2026-01-31. */
export function datedChangelog(changelog: string, version: string, date: string): string {
  return changelog.replace(new RegExp(`^## ${unreleased.source.slice(1)}`, 'm'), `## [${version}] – ${date}`);
}
