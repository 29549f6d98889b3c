import { killWorkersUnderLoad } from '../../support/processes/killed-workers.js';
import { startService, twoWorkers } from '../../support/service/service.js';

describe('Workers killed one after the other under load', () => {
  it('lose their requests only: 20 connections, 15 s', async () => {
    await using service = await startService({ env: twoWorkers });
    const tally = await killWorkersUnderLoad(service, { connections: 20, everyMs: 1500, forMs: 15_000 });
    expect(tally).toMatchObject({ refused: 0, ofOthers: 0, fallen: [], left: 0 });
    expect(tally.kills).toBeGreaterThan(2);
    expect(tally.answered).toBeGreaterThan(20);
    expect(service.stderr).toEqual([]);
  });
});
