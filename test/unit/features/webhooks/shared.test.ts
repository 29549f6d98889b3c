import { signOn } from '../../../../src/features/sign-on/feature.js';
import { webhooks } from '../../../../src/features/webhooks/feature.js';
import { ConfigFault, type Environment, loadConfig } from '../../../../src/shared/config/config.js';
import { type ConfiguredFeature, secretNames } from '../../../../src/shared/config/feature-variables.js';
import { webhookSecret } from '../../../support/service/receiver.js';

const url = 'https://example.org/notices';

function load(env: Environment, ...others: readonly ConfiguredFeature[]) {
  return loadConfig(env, () => Promise.reject(new Error('there is no file')), undefined, [webhooks, ...others]);
}

async function faultsOf(env: Environment, ...others: readonly ConfiguredFeature[]): Promise<readonly string[]> {
  const thrown = await load(env, ...others).catch((error: unknown) => error);
  if (!(thrown instanceof ConfigFault)) throw new Error(`no fault was found in ${JSON.stringify(env)}`);
  return thrown.faults;
}

describe('The receiver of notices', () => {
  it.each(['https://example.org/hook?a=b', 'http://127.0.0.1:8080/'])('may be %s', async (receiver) => {
    const { featureValues } = await load({
      MODEL_API_WEBHOOK_URL: receiver,
      MODEL_API_WEBHOOK_SECRET: webhookSecret,
    });
    expect(featureValues).toEqual({ MODEL_API_WEBHOOK_URL: receiver, MODEL_API_WEBHOOK_SECRET: webhookSecret });
  });

  it.each([
    ...['', 'example.org', 'ftp://example.org', 'https://me@example.org', 'https://me:x@example.org/'],
    'https://a/#b',
  ])('must not be %j', async (receiver) => {
    const faults = await faultsOf({ MODEL_API_WEBHOOK_URL: receiver, MODEL_API_WEBHOOK_SECRET: webhookSecret });
    expect(faults).toEqual([expect.stringMatching(/^MODEL_API_WEBHOOK_URL: .+/)]);
  });

  it('needs a secret', async () => {
    const faults = await faultsOf({ MODEL_API_WEBHOOK_URL: url });
    expect(faults).toEqual([expect.stringMatching(/^MODEL_API_WEBHOOK_SECRET: must be set/)]);
  });

  it.each([
    ['http://example.org', 1],
    ['https://example.org', 0],
    ['http://127.0.0.1:8080', 0],
    ['http://[::1]:8080', 0],
  ])('causes a warning only on another host and without TLS: %s', async (receiver, count) => {
    const { warnings } = await load({ MODEL_API_WEBHOOK_URL: receiver, MODEL_API_WEBHOOK_SECRET: webhookSecret });
    expect(warnings).toHaveLength(count);
  });
});

describe('The secret of notices', () => {
  it.each([24, 64].map((bytes) => `whsec_${Buffer.alloc(bytes, 1).toString('base64')}`))(
    'may be %s, and is redacted',
    async (secret) => {
      const { featureSecrets } = await load({ MODEL_API_WEBHOOK_SECRET: secret });
      expect(featureSecrets).toEqual([{ name: 'MODEL_API_WEBHOOK_SECRET', value: secret }]);
    },
  );

  it.each([
    ...['', 'whsec_', `whsec_${Buffer.alloc(23).toString('base64')}`],
    ...[Buffer.alloc(32).toString('base64'), 'whsec_ü'],
  ])('must not be %j', async (secret) => {
    const faults = await faultsOf({ MODEL_API_WEBHOOK_URL: url, MODEL_API_WEBHOOK_SECRET: secret });
    expect(faults).toEqual([expect.stringMatching(/^MODEL_API_WEBHOOK_SECRET: .+/)]);
  });
});

it('The secret and the path of the receiver must not be visible to other programs', async () => {
  expect(secretNames([webhooks], ['whole'])).toEqual(['MODEL_API_WEBHOOK_SECRET']);
  expect(secretNames([webhooks], ['part', 'whole'])).toEqual(['MODEL_API_WEBHOOK_URL', 'MODEL_API_WEBHOOK_SECRET']);
  const file = `MODEL_API_WEBHOOK_SECRET=${webhookSecret}`;
  const env = { MODEL_API_WEBHOOK_SECRET: webhookSecret };
  const warningsFor = async (mode: number) =>
    (
      await loadConfig(
        env,
        async () => file,
        async () => mode,
        [webhooks],
      )
    ).warnings;
  expect(await warningsFor(0o600)).toEqual([]);
  expect(await warningsFor(0o644)).toEqual([expect.stringContaining('MODEL_API_WEBHOOK_SECRET')]);
});

it('Variables of a feature that is not there are unknown', async () => {
  const { warnings } = await loadConfig({ MODEL_API_WEBHOOK_URL: url }, async () => '');
  expect(warnings).toEqual([expect.stringMatching(/^MODEL_API_WEBHOOK_URL is not a variable of prompt-relay/)]);
});

it('The header with the URL of a client cannot name the people whom a proxy signs on', async () => {
  const proxy = { MODEL_API_TRUST_PROXY: '192.0.2.1', MODEL_API_USER_HEADER: 'Remote-User' };
  const fault = 'must be a header that only the proxy adds, such as X-Forwarded-User';
  for (const header of ['X-Callback-Url', 'x-callback-url-2']) {
    const asUser = await faultsOf({ ...proxy, MODEL_API_USER_HEADER: header }, signOn);
    expect(asUser).toEqual([`MODEL_API_USER_HEADER: ${fault}`]);
    const asGroups = await faultsOf({ ...proxy, MODEL_API_GROUPS_HEADER: header }, signOn);
    expect(asGroups).toEqual([`MODEL_API_GROUPS_HEADER: ${fault}`]);
  }
  const { featureValues } = await load({ ...proxy, MODEL_API_USER_HEADER: 'X-Callback-Urls' }, signOn);
  expect(featureValues.MODEL_API_USER_HEADER).toBe('x-callback-urls');
});
