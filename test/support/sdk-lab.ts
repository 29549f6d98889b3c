import { type SdkClient, startSdkClient } from './sdk-client.js';
import { type Service, script, startService, startWithProgram } from './service.js';

/** One interface of one SDK, as the tests know it. */
export interface SdkFace {
  readonly name: string;
  /** What it calls the endings. */
  readonly endings: { readonly whole: string; readonly tool: string };
  /** Calls that answer with a person. */
  readonly structured: readonly string[];
  /** Further calls that it has. */
  readonly has: readonly ('models' | 'helper' | 'countTokens' | 'jsonObject' | 'requestId')[];
}

/** What the tests of one SDK share: its client, and the services that it calls. */
export interface SdkLab {
  readonly client: SdkClient;
  readonly demo: Service;
  readonly command: Service;
}

const live = { MODEL_API_LIVE_SESSIONS: '4' };

/** Starts what the tests of a file need, and ends it after them. To be read inside tests only. */
export function sdkLab(sdk: string): SdkLab {
  const parts: { -readonly [Name in keyof SdkLab]?: SdkLab[Name] } = {};
  beforeAll(async () => {
    parts.client = await startSdkClient(sdk);
    parts.demo = await startService({ env: live });
    parts.command = await startWithProgram(script('needs-a-repair.pl', '{model}'), {
      MODEL_API_DEFAULT_MODEL: 'eliza',
    });
  }, 400_000);
  afterAll(async () => {
    await parts.client?.[Symbol.asyncDispose]();
    await Promise.all([parts.demo?.stop(), parts.command?.stop()]);
  });
  return parts as SdkLab;
}
