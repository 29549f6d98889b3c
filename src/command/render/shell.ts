/** In quotes, whatever is in it: each of its own quotes ends them, stands for itself, and begins them again. */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** As a POSIX shell takes it: in quotes only where it needs them. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./{}-]+$/.test(word) ? word : shellQuoted(word);
}
