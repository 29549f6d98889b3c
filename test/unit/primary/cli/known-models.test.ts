import { KnownModels } from '../../../../src/primary/cli/model-catalog.js';
import type { ModelChoice } from '../../../../src/primary/cli/models.js';
import { cliError, invalid, RelayError } from '../../../../src/shared/errors.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

const ofSeveral: ModelChoice = { fallback: 'a/x', allowed: null, label: 'a/x', fault: () => null };
const ofOne: ModelChoice = { fallback: null, allowed: null, label: null };
const unknown = cliError('model_unknown', 'the model CLI reports: no such model', { stderr: 'noise' });

interface Known {
  readonly choice?: ModelChoice;
  readonly ids?: readonly string[] | 'never' | 'broken';
  readonly models?: readonly string[] | null;
  readonly clock?: FakeClock;
}

function known({
  choice = ofSeveral,
  ids = ['a/x', 'b/y'],
  models = null,
  clock = new FakeClock(),
}: Known = {}): KnownModels {
  const list = async () => {
    if (ids === 'broken') throw new Error('no CLI');
    if (ids === 'never') return new Promise<never>(() => {});
    return { count: ids.length, models: ids.map((id) => ({ id, name: id, default: false })) };
  };
  return new KnownModels({ router: { names: { choice }, modelsOf: () => models }, catalog: { list }, clock });
}

async function messageOf(error: RelayError, options?: Known): Promise<string> {
  return (await known(options).explain(error, 'key a')).message;
}

describe('An unknown model', () => {
  it('is reported with the names of the known models, by the relay and by the CLI', async () => {
    expect(await messageOf(invalid('model', 'must be one of a/x'))).toBe('model: must be one of a/x, b/y');
    const needs = invalid('model', 'must name a model of b, as in b/NAME');
    expect(await messageOf(needs)).toBe('model: must name a model of b, as in b/NAME; this service has a/x, b/y');
    const explained = await known().explain(unknown, 'key a');
    expect(explained).toMatchObject({ code: 'cli_error', reason: 'model_unknown', stderr: 'noise' });
    expect(explained.message).toBe('the model CLI reports: no such model; this service has a/x, b/y');
  });

  it('is reported with the models that the client may use', async () => {
    expect(await messageOf(unknown, { models: ['b/y', 'b/z'] })).toMatch(/; this service has b\/y, b\/z$/);
    const allowed = { ...ofSeveral, allowed: ['b/y'], limitedBy: 'MODEL_API_ALLOWED_MODELS' };
    expect(await messageOf(unknown, { choice: allowed, models: ['b/y', 'b/z'] })).toMatch(/; this service has b\/y$/);
  });

  it('is reported unchanged if the message already lists them', async () => {
    const limited = invalid('model', 'must be one of b/y (the models of its API key)');
    expect(await messageOf(limited, { models: ['b/y'] })).toBe(limited.message);
    const plain = invalid('model', 'must be one of x, y');
    expect(await messageOf(plain, { choice: { ...ofOne, allowed: ['x', 'y'] } })).toBe(plain.message);
  });

  it('is reported unchanged if no models are known', async () => {
    for (const ids of [[], ['default'], 'broken'] as const)
      expect(await messageOf(unknown, { choice: ofOne, ids })).toBe(unknown.message);
  });

  it('does not wait for a CLI that lists its models slowly', async () => {
    const clock = new FakeClock();
    const explained = messageOf(unknown, { clock, ids: 'never' });
    await clock.advance(3000);
    expect(await explained).toBe(unknown.message);
  });

  it('is reported with a limited number of names', async () => {
    const ids = Array.from({ length: 300 }, (_, n) => `a/${n}`);
    expect(await messageOf(unknown, { ids })).toMatch(/ a\/39 and 260 more \(GET \/models\)$/);
  });

  it('is not confused with other failures', () => {
    expect([unknown, invalid('model', 'x')].map(KnownModels.isUnknown)).toEqual([true, true]);
    const others = [
      cliError('auth', 'x'),
      invalid('prompt', 'x'),
      new RelayError('not_found', 'x'),
      new Error('x'),
      null,
    ];
    expect(others.map(KnownModels.isUnknown)).toEqual(others.map(() => false));
  });
});
