import { createLogins, type LoginSource, type LoginsParts } from '../../../../src/primary/cli/logins.js';
import type { ModelCli } from '../../../../src/primary/cli/model-cli.js';

function recordedCli(name: string, seen: string[]): ModelCli {
  const health = {
    checks: { startChecks: () => seen.push(`${name} checks`) },
    forceCheck: async () => seen.push(`${name} checked`),
  };
  const standby = { startStandby: () => seen.push(`${name} standby`) };
  return { name, health, standby, login: { startRenewals: () => seen.push(`${name} login`) } } as unknown as ModelCli;
}

describe('The logins of model CLIs without further ones', () => {
  it('serve all clients, and are started and checked', async () => {
    const seen: string[] = [];
    const [first, second] = [recordedCli('claude', seen), recordedCli('codex', seen)];
    const logins = createLogins(null, [first, second], {} as LoginsParts);
    expect([logins.clis, logins.all]).toEqual([
      [first, second],
      [first, second],
    ]);
    const job = { client: 'key ada' as const, sessionId: () => null, circuit: '', account: null };
    expect([logins.choose(second, job)?.cli, logins.mayServe(second, 'key ada'), logins.firstOf(second)]).toEqual([
      second,
      true,
      second,
    ]);
    expect([logins.secrets, logins.unused, logins.warnings([])]).toEqual([[], [], []]);
    logins.startChecks();
    await logins.checkAll();
    await logins.reread();
    const started = ['claude', 'codex'].flatMap((name) =>
      ['checks', 'login', 'standby'].map((what) => `${name} ${what}`),
    );
    expect(seen).toEqual([...started, 'claude checked', 'codex checked']);
  });

  it('are those of a source, if there is one', () => {
    const own = createLogins(null, [recordedCli('own', [])], {} as LoginsParts);
    const source = { create: () => own } as unknown as LoginSource;
    expect(createLogins(source, [recordedCli('claude', [])], {} as LoginsParts)).toBe(own);
  });
});
