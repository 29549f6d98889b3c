/** null where that was all. */
export function nextCursor(cursor: unknown): string | null {
  return String(cursor) === '0' ? null : String(cursor);
}

/** `flat`: a name, how many, and so on. */
export function addTo(counts: Record<string, number>, flat: unknown): void {
  const words = (flat as readonly unknown[]).map(String);
  for (let at = 0; at < words.length; at += 2) {
    const what = words[at] ?? '';
    counts[what] = (counts[what] ?? 0) + Number(words[at + 1]);
  }
}
