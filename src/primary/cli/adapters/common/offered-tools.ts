import { cliError } from '../../../../shared/errors.js';

/** Longest list of names in an error. */
const maxNames = 10;

/**
 * Throws `cli_error` if a trial shows tools that the relay has not allowed: a prompt could make the program use them.
 * A newer version may have tools that no setting of the relay switches off.
 */
export function refuseTools(program: string, version: string | null, offered: readonly string[]): void {
  if (offered.length === 0) return;
  const more = offered.length > maxNames ? ', …' : '';
  const names = offered.slice(0, maxNames).join(', ') + more;
  const which = version === null ? 'this version' : `version ${version}`;
  throw cliError('other', `${which} of ${program} cannot be used safely: it offers the model its own tools: ${names}`);
}
