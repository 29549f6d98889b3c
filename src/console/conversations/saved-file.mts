import type { PageClock } from '../page-clock.mjs';

const keptMs = 60_000;

/** Has the browser save a text as a file. */
export function saveFile(name: string, type: string, text: string, clock: PageClock): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  clock.after(keptMs, () => URL.revokeObjectURL(url)); // until then the browser may still read it
}
