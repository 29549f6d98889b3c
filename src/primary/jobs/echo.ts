/**
 * Minimum length of a common substring of a line and a text, in UTF-16 units. A shorter text or line must match as a
 * whole.
 */
const minCommon = 16;
/** Shorter texts and lines are ignored, because they match too often. */
const minShort = 4;
/** Limits of the compared text in UTF-16 units: at the start and at the end of each text, and in total. */
const maxOfEach = 16 * 1024;
const maxTotal = 64 * 1024;
/** Minimum amount by which a text counts towards the total, because every line is compared with every short text. */
const minCost = 64;

const leftOut = '[a line that repeats the prompt]';

/**
 * Returns stderr without the lines that repeat the program's input. Programs often print their input in an error, and
 * the log, which shows the end of stderr, must not contain prompts (docs/monitoring.md). The most important texts come
 * first, because the total is limited.
 */
export function withoutEcho(stderr: string, texts: Iterable<string>): string {
  const parts = Array.from(compared(texts));
  const runs = new Set(parts.flatMap(runsOf));
  const short = parts.filter(({ length }) => length < minCommon);
  const isEcho = (line: string) => {
    const text = line.trim();
    if (text.length < minCommon && text.length >= minShort && parts.some((part) => part.includes(text))) return true;
    return short.some((part) => line.includes(part)) || runsOf(line).some((run) => runs.has(run));
  };
  const lines = stderr.split('\n').map((line) => (isEcho(line) ? leftOut : line));
  return lines.filter((line, index) => line !== leftOut || lines[index - 1] !== leftOut).join('\n');
}

function* compared(texts: Iterable<string>): Generator<string> {
  let left = maxTotal;
  for (const text of texts) {
    const trimmed = text.trim();
    const isLong = trimmed.length > 2 * maxOfEach;
    const parts = isLong ? [trimmed.slice(0, maxOfEach), trimmed.slice(-maxOfEach)] : [trimmed];
    yield* parts.filter(({ length }) => length >= minShort);
    left -= Math.max(minCost, Math.min(trimmed.length, 2 * maxOfEach));
    if (left <= 0) return;
  }
}

function runsOf(text: string): string[] {
  return Array.from({ length: Math.max(0, text.length - minCommon + 1) }, (_, at) => text.slice(at, at + minCommon));
}
