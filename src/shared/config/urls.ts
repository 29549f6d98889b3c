/** Whether a text is an http:// or https:// URL without a user and without a fragment. */
export function isPlainUrl(value: string): boolean {
  if (!/^https?:\/\//i.test(value) || !URL.canParse(value)) return false;
  const { username, password, hash } = new URL(value);
  return username === '' && password === '' && hash === '';
}
