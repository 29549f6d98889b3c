import { withTarget } from '../../../src/primary/api/target.js';
import { jobRequest } from '../../support/job-records.js';

describe('A request', () => {
  it('goes on with the model that its name stands for, at once or when that is known', async () => {
    const request = jobRequest({ model: 'gpt-4o' });
    expect(withTarget(request, () => 'haiku')).toEqual({ ...request, model: 'haiku' });
    expect(await withTarget(request, async () => 'haiku')).toEqual({ ...request, model: 'haiku' });
  });

  it('stays the same where its name stands for itself, or where it names none', async () => {
    const [named, nameless] = [jobRequest({ model: 'haiku' }), jobRequest()];
    expect(withTarget(named, (name) => name)).toBe(named);
    expect(await withTarget(named, async (name) => name)).toBe(named);
    expect(withTarget(nameless, () => 'haiku')).toBe(nameless);
  });
});
