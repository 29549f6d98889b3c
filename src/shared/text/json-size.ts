/**
 * Whether the JSON of a value has more than `max` UTF-16 units. Reads no more of the value than needed: writing the JSON
 * of a body with one long text takes 20 ms. May return false for a text with many escapes, whose JSON is longer than
 * itself.
 */
export function isLargeJson(value: unknown, max: number): boolean {
  return restOf(value, max) < 0;
}

/** Returns how many of the units are left after a value; a negative number if they do not suffice. */
function restOf(value: unknown, units: number): number {
  if (typeof value === 'string') return units - value.length - 2;
  if (typeof value !== 'object' || value === null) return units - 1;
  let rest = units - 2;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && rest >= 0; at++) rest = restOf(value[at], at === 0 ? rest : rest - 1);
    return rest;
  }
  const fields = value as Readonly<Record<string, unknown>>;
  for (const name in fields) {
    if (rest < 0) return rest;
    if (fields[name] !== undefined) rest = restOf(fields[name], rest - name.length - 3);
  }
  return rest;
}
