import { features } from '../../features.js';
import { cliFamiliesOf, cliKindsOf, cliSchemas } from '../../shared/config/clis.js';

const families = cliFamiliesOf(features);

/** Values of MODEL_API_CLI that are words. */
export const cliKinds = cliKindsOf(families);

/** Value of MODEL_API_CLI. */
export const { MODEL_API_CLI: cliSchema } = cliSchemas(families);

/** Values of MODEL_API_CLI, for people. */
export const cliSummary = [cliKinds.join(', '), ...families.flatMap(({ form }) => form?.summary ?? [])].join(', or ');

/** Command line of the login of each kind of model CLI. */
export const loginPrograms = Object.assign({}, ...families.map(({ logins }) => logins)) as Readonly<
  Record<string, string>
>;
