/** UTF-16 units in a row that a line and a text must have in common; of a shorter one, all of it. */
const minCommon = 16;
/** What is shorter than this stands in many a line. */
const minShort = 4;
/** UTF-16 units that are compared: of a text, at its begin and as many at its end; and of all texts together. */
const maxOfEach = 16 * 1024;
const maxTotal = 64 * 1024;
/** Each text counts for so much at least: every line is compared with each that is short. */
const minCost = 64;

const leftOut = '[a line that repeats the prompt]';

/** What a program wrote to stderr, without the lines that repeat what it was told. The texts that matter most come first. */
export function withoutEcho(stderr: string, texts: Iterable<string>): string {
  const parts = Array.from(compared(texts));
  const runs = new Set(parts.flatMap(runsOf));
  const short = parts.filter(({ length }) => length < minCommon);
  const isEcho = (line: string) => {
    const said = line.trim();
    if (said.length < minCommon && said.length >= minShort && parts.some((part) => part.includes(said))) return true;
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
