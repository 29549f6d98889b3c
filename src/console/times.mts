import { durationText } from './format.mjs';

/** `7 s`, `1 min 5 s`: an age that counts up second by second. */
export function ageText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  return seconds < 60 ? `${seconds} s` : durationText(seconds * 1000);
}

/** `14:03`, in the reader's own time zone. */
export function hourText(time: string | number): string {
  return new Date(time).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
}

/** `14:03:09` of today; of another day with its date. */
export function momentText(time: string | number, now: number): string {
  const date = new Date(time);
  const clock = date.toLocaleTimeString('en-GB');
  const isToday = date.toDateString() === new Date(now).toDateString();
  return isToday ? clock : `${date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })}, ${clock}`;
}
