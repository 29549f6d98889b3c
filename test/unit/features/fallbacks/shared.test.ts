import { fallbacks } from '../../../../src/features/fallbacks/feature.js';
import { type FallbackValues, findModelFaults } from '../../../../src/features/fallbacks/shared.js';
import { ConfigFault, type Environment, loadConfig } from '../../../../src/shared/config/config.js';

function load(env: Environment) {
  return loadConfig(env, () => Promise.reject(new Error('there is no file')), undefined, [fallbacks]);
}

const opusOnly = { model: 'opus', fallbacks: [{ name: 'haiku', account: null }] };
const claudeRule = {
  model: 'claude/opus',
  fallbacks: [
    { name: 'claude/opus', account: 'spare' },
    { name: 'codex', account: null },
  ],
};

describe('The rules for fallbacks', () => {
  it.each([
    ['', []],
    ['opus>haiku', [opusOnly]],
    [
      ' claude/opus > claude@spare/opus>codex , codex>claude@spare',
      [claudeRule, { model: 'codex', fallbacks: [{ name: 'claude', account: 'spare' }] }],
    ],
  ])('may be %j', async (text, rules) => {
    const { featureValues } = await load({ MODEL_API_FALLBACKS: text });
    expect(featureValues).toEqual({ MODEL_API_FALLBACKS: rules, MODEL_API_FALLBACK_WAIT_SECONDS: 600_000 });
  });

  it.each([
    ...['opus', 'opus>', '>opus', 'a>b>>c', 'claude@spare/opus>codex', 'a>-b', 'a>b c', 'a>b@-x/c'],
    ...['a>b,a>c', 'a>b>c>d>e>f>g>h>i', 'a=b'],
  ])('must not be %j', async (text) => {
    await expect(load({ MODEL_API_FALLBACKS: text })).rejects.toThrow(ConfigFault);
  });

  it.each([
    ['0', 0],
    ['0.5', 500],
    ['86400', 86_400_000],
  ])('let background jobs wait for %s seconds', async (text, ms) => {
    const { featureValues } = await load({ MODEL_API_FALLBACK_WAIT_SECONDS: text });
    expect(featureValues.MODEL_API_FALLBACK_WAIT_SECONDS).toBe(ms);
  });

  it.each(['', '-1', '86400.001', 'ten'])('let background jobs not wait for %j seconds', async (text) => {
    await expect(load({ MODEL_API_FALLBACK_WAIT_SECONDS: text })).rejects.toThrow(ConfigFault);
  });

  it('name models, which are those that the operator has chosen', async () => {
    const { featureModels } = await load({ MODEL_API_FALLBACKS: 'claude/opus>claude@spare/opus>codex' });
    expect(featureModels).toEqual(['claude/opus', 'claude/opus', 'codex']);
  });

  it('must have models and accounts of this service', async () => {
    const { featureValues } = await load({ MODEL_API_FALLBACKS: 'claude/opus>claude@spare/opus>codex' });
    const faultOf = (model: string, account: string | null) =>
      model === 'codex' || account !== null ? `is wrong at ${account}` : null;
    expect(findModelFaults(featureValues as FallbackValues, { faultOf })).toEqual([
      'MODEL_API_FALLBACKS: claude/opus is wrong at spare',
      'MODEL_API_FALLBACKS: codex is wrong at null',
    ]);
  });
});
