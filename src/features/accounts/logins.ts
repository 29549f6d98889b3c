import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LoginProvider, LoginSettings, LoginSource } from '../../primary/cli/logins.js';
import { findProgram } from '../../primary/cli/process/program.js';
import { endsWell } from '../../primary/lifecycle/host.js';
import type { ClientText } from '../../shared/client.js';
import type { Environment } from '../../shared/config/config.js';
import { accountsSource } from './account-login.js';
import { CliAccounts, isolationWarnings, noAccounts, watchAccountsFile } from './accounts.js';
import { refuseCapabilities } from './capabilities.js';
import { type FenceTools, fenced, LoginFence, realPath } from './login-fence.js';
import { type AccountValues, accountsIn, type variables } from './shared.js';

/** Rejects with a ConfigFault if the programs of accounts would have capabilities that weaken the fence around logins. */
async function checkHost(values: AccountValues): Promise<void> {
  const { MODEL_API_ACCOUNTS_FILE: path, MODEL_API_ACCOUNTS_AS_ROOT: mayBeRoot } = values;
  if (path !== null && !mayBeRoot) await refuseCapabilities();
}

/** Creates what hides the logins of accounts from each other; resolves with null if the host cannot, or without accounts. */
async function createFence(
  { MODEL_API_ACCOUNTS_FILE: path }: AccountValues,
  searchPath: string,
  { HOME: home }: Environment,
): Promise<LoginFence | null> {
  const tools = path === null ? null : await findFenceTools(searchPath);
  return tools && new LoginFence(tools, home ? await realPath(home) : null);
}

/**
 * Returns the programs that confine another one with Landlock; null if the host cannot. Only a trial shows this, because
 * the kernel, a container or a systemd unit may lack Landlock.
 */
export async function findFenceTools(searchPath: string): Promise<FenceTools | null> {
  const [env, perl] = await Promise.all([findProgram('env', searchPath), findProgram('perl', searchPath)]);
  if (env.kind !== 'found' || perl.kind !== 'found') return null;
  const tools = { env: env.path, perl: perl.path };
  const trial = fenced(tools, [join(tmpdir(), 'hidden')], null, [perl.path, ['-e', '1']]);
  return (await endsWell(...trial)) ? tools : null;
}

/** Reads the accounts file, if one is configured. Rejects with a ConfigFault. */
async function open(values: AccountValues, settings: LoginSettings): Promise<LoginSource> {
  const { MODEL_API_ACCOUNTS_FILE: path, MODEL_API_ACCOUNTS_SHARE: isShared } = values;
  const source = path === null ? null : await accountsSource(path, settings);
  const { accounts, closed, faults } = source?.first ?? noAccounts;
  return {
    lineFaults: faults.map((fault) => `MODEL_API_ACCOUNTS_FILE: ${fault}`),
    findFault: (cli, account) => {
      const isPrepared = accounts.some((each) => each.cli === cli && each.line.name === account);
      const isKnown = isPrepared || closed.some((each) => each.name === account);
      return isKnown ? null : `has no account ${account} (MODEL_API_ACCOUNTS_FILE)`;
    },
    warnings: (host, clis) => isolationWarnings(accounts, host, clis),
    create: (serviceClis, parts) => {
      const accountsOf = (client: ClientText) => accountsIn(parts.featureOptionsOf(client));
      const created = new CliAccounts(serviceClis, parts, accountsOf, source?.first, isShared);
      if (source !== null) created.watch(watchAccountsFile(created, source, parts, parts.host));
      return created;
    },
  };
}

export const accountLogins: LoginProvider<typeof variables> = { checkHost, createFence, open };
