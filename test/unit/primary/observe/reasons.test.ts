import { FileFaults } from '../../../../src/primary/access/file-faults.js';
import type { CircuitStatus } from '../../../../src/primary/health/circuit.js';
import { degradedReasons, type ReasonSources } from '../../../../src/primary/observe/degraded.js';
import type { ReadinessEntry } from '../../../../src/shared/health.js';
import { loginOf } from '../../../support/agents/logins.js';

const until = Date.UTC(2026, 0, 2);
const account: CircuitStatus = { state: 'open', model: null, reason: 'quota', since: 0, until };

const closed: CircuitStatus = { state: 'closed', model: null, reason: null, since: null, until: null };

function check(cli: string, fields: Partial<ReadinessEntry> = {}): ReadinessEntry {
  const found = { status: 'ready', checkedAt: 0, durationMs: 1, trigger: 'interval', version: '1.0' } as const;
  return { ...found, adapter: cli, cli, error: null, ...fields };
}

interface Options {
  readonly checks?: readonly ReadinessEntry[];
  readonly open?: readonly CircuitStatus[];
  readonly store?: ReasonSources['store'];
  readonly fileFaults?: FileFaults;
}

/** Returns the reasons. The open circuits belong to the first CLI. */
function reasons({
  checks = [check('claude')],
  open = [],
  store = { kind: 'memory', isUp: true },
  fileFaults,
}: Options) {
  const clis = checks.map((current, index) => ({
    ...loginOf(current.cli),
    publicName: (model: string | null) => model,
    health: {
      shortage: null,
      checks: { current },
      circuits: { status: [index === 0 ? (open[0] ?? closed) : closed] as const },
    },
  }));
  const [cli] = clis;
  if (cli === undefined) throw new Error('there is no CLI');
  const names = { choice: { fallback: 'opus', label: 'opus' }, defaultRoute: { cli, model: 'opus' } };
  const sources = { clis, names, store, fileFaults: fileFaults ?? new FileFaults() };
  return degradedReasons({ ...sources, host: { defects: { lastAt: null } } } as unknown as ReasonSources);
}

describe('The reasons for a degraded service', () => {
  it('are empty if all is well', () => {
    expect(reasons({})).toEqual([]);
    expect(reasons({ checks: [check('claude'), check('codex')] })).toEqual([]);
  });

  it('name the one of three CLIs that is broken', () => {
    const broken = check('codex', { status: 'not_ready', error: 'nobody is logged in' });
    expect(reasons({ checks: [check('claude'), broken, check('local')] })).toEqual([
      { part: 'cli', name: 'codex', message: 'the model CLI codex is not ready: nobody is logged in' },
    ]);
  });

  it('name each file with faults, but nobody in it', () => {
    const fileFaults = new FileFaults();
    fileFaults.replace('keys', ['line 2: ada has the same key as bob', 'line 3: must begin with name:sha256:']);
    fileFaults.replace('accounts', ['line 1: ada needs its model CLI']);
    const found = reasons({ fileFaults });
    expect(found.map(({ part, name, message }) => [part, name, message.slice(0, 8)])).toEqual([
      ['keys', 'keys_file', '2 faults'],
      ['accounts', 'accounts_file', '1 fault '],
    ]);
    expect(JSON.stringify(found)).not.toMatch(/ada|bob/);
  });

  it('name a CLI that has not been checked yet', () => {
    expect(reasons({ checks: [check('claude', { status: 'unknown', checkedAt: null })] })).toEqual([
      { part: 'cli', name: 'claude', message: 'the model CLI claude has not been checked yet' },
    ]);
  });

  it('name the store, and no CLI that works', () => {
    expect(reasons({ store: { kind: 'redis', isUp: false } })).toEqual([
      {
        part: 'store',
        name: 'redis',
        message: 'the store (redis) is down: conversations and background jobs are refused',
      },
    ]);
  });

  it.each<[string, CircuitStatus, object]>([
    [
      'of an account',
      account,
      { part: 'quota', name: 'claude', message: 'the account of the model CLI claude has used up its quota' },
    ],
    [
      'of the default model',
      { ...account, model: 'opus' },
      { part: 'quota', name: 'opus', message: 'the account of the model CLI claude has used up its quota for opus' },
    ],
    [
      'of a credential',
      { ...account, reason: 'auth' },
      { part: 'cli', name: 'claude', message: 'the credential of the model CLI claude is refused' },
    ],
  ])('name a circuit, and until when it is open: %s', (_, circuit, reason) => {
    expect(reasons({ open: [circuit] })).toEqual([{ ...reason, until: '2026-01-02T00:00:00.000Z' }]);
  });

  it('list a blocked account once, even if it makes the check of its CLI fail', () => {
    const held = check('claude', { status: 'not_ready', error: 'the account …', isHeld: true });
    expect(reasons({ checks: [held], open: [account] }).map(({ part }) => part)).toEqual(['quota']);
  });

  it('list the fault that the program itself reports beside a blocked account', () => {
    const broken = check('claude', { status: 'not_ready', error: 'nobody is logged in' });
    expect(reasons({ checks: [broken], open: [account] }).map(({ part }) => part)).toEqual(['cli', 'quota']);
  });

  it('are never empty while a check reports that a CLI is not ready', () => {
    const held = check('claude', { status: 'not_ready', error: 'the account …', isHeld: true });
    expect(reasons({ checks: [held] })).toMatchObject([{ part: 'cli', message: expect.stringContaining('account') }]);
  });
});
