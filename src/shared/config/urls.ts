/** Whether a text is an http:// or https:// URL without a user and without a fragment. */
export function isPlainUrl(value: string): boolean {
  if (!/^https?:\/\//i.test(value) || !URL.canParse(value)) return false;
  const { username, password, hash } = new URL(value);
  return username === '' && password === '' && hash === '';
}

const patternForm = /^https?:\/\/[^/\s*]+\/[^\s?#*]*\*$/i;

/** Parses the start of URLs, such as `https://example.org/hooks/*`, without the star; null if it is wrong. */
export function readUrlPattern(text: string): string | null {
  const start = text.slice(0, -1);
  if (!patternForm.test(text) || !isPlainUrl(start)) return null;
  const { origin, pathname } = new URL(start);
  return origin + pathname;
}
