import { type Account, serviceLogin } from '../../../src/primary/cli/model-cli.js';
import { loginLabel } from '../../../src/shared/text/format.js';

/** Returns a login of a model CLI without processes: of an account, or of the service. */
export function loginOf(name: string, options: Partial<Account> = {}) {
  const account = { ...serviceLogin, ...options };
  const names = { cli: name, ...(account.name !== null && { account: account.name }) };
  return { name, account, loginKey: {}, names, label: loginLabel(name, account.name) };
}
