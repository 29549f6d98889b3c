import { CliHealth, type HealthParts, type HealthSettings } from '../../../src/primary/health/cli-health.js';
import { SeenClients } from '../../../src/primary/health/evidence.js';
import type { Clock } from '../../../src/shared/clock.js';
import { LogBook } from '../basics/log-book.js';

/** Returns the health of a CLI that reports no problem, unless `parts` override this. */
export function healthOf(clock: Clock, parts: Partial<HealthParts & HealthSettings> = {}): CliHealth {
  const { historyLimit = 100, defaultCircuit: usual = '', ...rest } = parts;
  const { names = { cli: 'main' }, adapter = 'claude', intervalMs = 0, ...others } = rest;
  return new CliHealth(
    { names, adapter, intervalMs, historyLimit, defaultCircuit: usual },
    {
      probe: async () => ({ version: '1.0', error: null }),
      publicName: (model) => model,
      clients: new SeenClients(),
      clock,
      random: () => 0.5,
      log: new LogBook(),
      onChecked: () => {},
      onCircuit: () => {},
      onSpoiled: () => {},
      ...others,
    },
  );
}
