import { createWebConsole } from '../../../../src/features/web-console/primary.js';
import type { PrimaryCore } from '../../../../src/primary/features/feature.js';

it.each([
  ['on', true, [['console', 'http://127.0.0.1:5051/console/']]],
  ['off', false, []],
] as const)('The greeting has a line for the console if it is served: %s', (setting, hasConsole, rows) => {
  const part = createWebConsole({ MODEL_API_CONSOLE: setting })({} as PrimaryCore);
  expect(part.bannerRows?.('http://127.0.0.1:5051')).toEqual(rows);
  expect(part.handlers.hasConsole?.({} as never)).toEqual({ hasConsole });
});
