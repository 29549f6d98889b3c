import { growthOf } from '../../support/doors/growth.js';
import { numerousParts } from '../../support/doors/numerous-parts.js';

/**
 * Limit of the slope: 1 is linear, 2 is quadratic. The garbage collector and the compiler disturb single measurements,
 * so only the best of several counts.
 */
const maxSlope = 1.6;
/** Part of the largest number, which `npm run bench -- growth` measures. */
const share = 1 / 8;
/** Largest factor between a body and the request that the primary gets. A schema is sent as two texts. */
const maxFactor = 8;

describe('The work for a body grows with its size, and not faster, and its job is not much larger, for many', () => {
  it.each(numerousParts().map((parts) => [`${parts.field}: ${parts.path}`, parts] as const))('%s', async (_, parts) => {
    const { slope, factor } = await growthOf(parts, parts.most * share, maxSlope);
    expect(slope).toBeLessThanOrEqual(maxSlope);
    expect(factor).toBeLessThanOrEqual(maxFactor);
  });
});
