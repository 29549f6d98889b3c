/** Copies a text. Rejects where the browser does not let it. */
export async function copyText(text: string, beside: HTMLElement): Promise<void> {
  // Not there where the page comes over plain HTTP from another host.
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const field = document.createElement('textarea');
  field.className = 'unseen';
  field.value = text;
  beside.after(field); // inside of a dialog that is open, nothing else can be selected
  field.select();
  const isCopied = document.execCommand('copy');
  field.remove();
  beside.focus();
  if (!isCopied) throw new Error('the browser copies nothing');
}
