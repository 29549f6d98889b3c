/** Returns the known name with the fewest single-character edits; null if none is close enough to be a typing error. */
export function nearest(name: string, known: readonly string[]): string | null {
  const ranked = known.map((candidate) => ({ candidate, edits: editsBetween(name, candidate) }));
  const best = ranked.reduce((a, b) => (b.edits < a.edits ? b : a), { candidate: '', edits: Number.POSITIVE_INFINITY });
  return best.edits <= name.length / 3 ? best.candidate : null;
}

/** Returns the Levenshtein distance, computed one row at a time. */
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
