import { readdir } from 'node:fs/promises';
import { Cgroup } from '../../../src/shared/process/cgroup.js';
import { describeWithCgroup, ownCgroupFolder } from '../../support/processes/scratch-cgroup.js';
import { fixture, startWithProgram } from '../../support/service/service.js';

describeWithCgroup()('The cgroup of an idle service', () => {
  it('is created again for the next job if another program removes it', async () => {
    await using service = await startWithProgram(fixture('upper.js'), { MODEL_API_CGROUP: 'auto' });
    const ask = async () => (await service.post('/ask', { prompt: 'Hello' })).status;
    expect(await ask()).toBe(200);
    const parent = new Cgroup(ownCgroupFolder() ?? '');
    const home = (await readdir(parent.path)).find((name) => name.startsWith(`prompt-relay-${service.pid}.`)) ?? '';
    expect(await parent.child(home).remove()).toBe(true);
    expect([await ask(), await ask()]).toEqual([200, 200]);
    expect((await service.log('cgroup_lost')).error).toBe(`${parent.child(home).path} was removed`);
    expect((await service.get('/version')).body.termination).toBe('cgroup');
  });
});
