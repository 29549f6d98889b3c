import type { PageClock } from './page-clock.mjs';

const revokeAfterMs = 60_000;

/** Makes the browser save a text as a file. */
export function saveFile(name: string, type: string, text: string, clock: PageClock): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser may still read the URL after the click, to write the file.
  clock.after(revokeAfterMs, () => URL.revokeObjectURL(url));
}
