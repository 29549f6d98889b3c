import { growthOf } from '../test/support/doors/growth.js';
import { numerousParts } from '../test/support/doors/numerous-parts.js';
import type { Row } from './support/table.js';

const maxSlope = 1.5;
const shown = 12;

/**
 * Measures how the processor time for a body grows with the number of its parts, for each API and each kind of part, up
 * to the largest number. Throws if it grows faster than the body.
 */
export async function growth(): Promise<Row[]> {
  const measured = [];
  for (const parts of numerousParts()) measured.push({ ...parts, ...(await growthOf(parts, parts.most, maxSlope)) });
  const sorted = measured.toSorted((a, b) => b.slope - a.slope);
  const rows = sorted.slice(0, shown).map(({ path, field, most, slope, ms }): Row => {
    const times = ms.map((each) => each.toFixed(0)).join(', ');
    return {
      question: `Growth with the number of parts: ${path}, ${field}`,
      target: `exponent ≤ ${maxSlope}`,
      measured: `${slope.toFixed(2)}: ${times} ms for a quarter, half and all of ${most}`,
      holds: slope <= maxSlope,
    };
  });
  const steep = sorted.filter(({ slope }) => slope > maxSlope);
  if (steep.length === 0) return rows;
  throw new Error(`grows faster than the body: ${steep.map(({ path, field }) => `${path} ${field}`).join('; ')}`);
}
