const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

/** Formats a duration: `40 ms`, `0.4 s`, `12 s`, `3 min 5 s`, `2 h 4 min`, `3 days 2 h`. */
export function durationText(ms: number): string {
  if (ms < 99.5) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < minute) return `${whole} s`;
  if (whole < hour) return pairText(whole, [minute, 'min'], [1, 's']);
  if (whole < day) return pairText(whole, [hour, 'h'], [minute, 'min']);
  return pairText(whole, [day, whole < 2 * day ? 'day' : 'days'], [hour, 'h']);
}

type Unit = readonly [seconds: number, name: string];

function pairText(seconds: number, [large, largeName]: Unit, [small, smallName]: Unit): string {
  const remainder = Math.floor((seconds % large) / small);
  const begin = `${Math.floor(seconds / large)} ${largeName}`;
  return remainder === 0 ? begin : `${begin} ${remainder} ${smallName}`;
}

export function countText(count: number): string {
  return count.toLocaleString('en');
}

/** Formats a cost with two decimal places, or with four if it is less than a dollar: `$0.0042`. */
export function costText(dollars: number): string {
  const places = dollars === 0 || dollars >= 0.995 ? 2 : 4;
  return `$${dollars.toLocaleString('en', { minimumFractionDigits: places, maximumFractionDigits: places })}`;
}

export function bytesText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const [size, unit] = bytes < 999_500 ? [bytes / 1000, 'KB'] : [bytes / 1_000_000, 'MB'];
  return `${size < 9.95 ? size.toFixed(1) : Math.round(size)} ${unit}`;
}

/** Formats a date and time in the reader's time zone. */
export function timeText(time: string | number): string {
  return new Date(time).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
}

const shortDay = { day: 'numeric', month: 'short' } as const;

const recentDays = [
  [0, 'Today'],
  [1, 'Yesterday'],
  [7, 'Previous 7 days'],
  [30, 'Previous 30 days'],
] as const;

/**
 * Names the group of a day in a list: `Today`, `Previous 7 days`, `March 2026`. Days begin at midnight in the reader's
 * time zone.
 */
export function dayGroupText(time: string | number, now: number): string {
  const date = new Date(time);
  const midnight = (moment: Date) => Date.UTC(moment.getFullYear(), moment.getMonth(), moment.getDate());
  const days = (midnight(new Date(now)) - midnight(date)) / (1000 * day);
  const [, recent = null] = recentDays.find(([most]) => days <= most) ?? [];
  return recent ?? date.toLocaleDateString('en-GB', { month: 'long', year: 'numeric' });
}

/** Formats a time in a row below the heading of `dayGroupText`: `14:03` if the heading is a day, else `27 Nov, 14:03`. */
export function rowTimeText(time: string | number, now: number): string {
  const isOneDay = ['Today', 'Yesterday'].includes(dayGroupText(time, now));
  return isOneDay ? hourText(time) : `${new Date(time).toLocaleDateString('en-GB', shortDay)}, ${hourText(time)}`;
}

/** Formats a count with its noun: `1 job`, `2 jobs`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}

/** Formats an age in whole seconds: `7 s`, `1 min 5 s`. */
export function ageText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  return seconds < 60 ? `${seconds} s` : durationText(seconds * 1000);
}

/** Formats a time of day in the reader's time zone: `14:03`. */
export function hourText(time: string | number): string {
  return new Date(time).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
}

/** Formats a time: `14:03:09` if it is today, else with the date. */
export function momentText(time: string | number, now: number): string {
  const date = new Date(time);
  const clock = date.toLocaleTimeString('en-GB');
  const isToday = date.toDateString() === new Date(now).toDateString();
  return isToday ? clock : `${date.toLocaleDateString('en-GB', shortDay)}, ${clock}`;
}

/** Quotes a text for a POSIX shell in single quotes. A quote in the text becomes `'\''`. */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Returns a text as a word of a POSIX shell, in quotes only if it needs them. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./{}-]+$/.test(word) ? word : shellQuoted(word);
}
