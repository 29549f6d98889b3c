import { printable } from './failure.js';
import type { AuthMethod } from './lines.js';
import type { GivenVariables } from './presets.js';

const maxLength = 300;

/** Owns how one agent may be logged in: by variables that it sees, and only once. */
export class AcpLogin {
  readonly #given: GivenVariables;
  #methods: readonly AuthMethod[] = [];
  #isUsed = false;

  /** `given`: what the program sees of the service's environment. */
  constructor(given: GivenVariables) {
    this.#given = given;
  }

  /** The agent offers these. */
  offered(methods: readonly AuthMethod[]): void {
    this.#methods = methods;
  }

  /** The parameters of `authenticate`, for the first method whose variables are set; null where there is none (any more). */
  take(): { readonly methodId: string } | null {
    const method = this.#isUsed ? undefined : this.#methods.find((each) => this.#isUsable(each));
    this.#isUsed = true;
    return method === undefined ? null : { methodId: method.id };
  }

  /** What the operator can do, in the agent's own words; empty where it offers nothing. */
  get ways(): string {
    const ways = this.#methods.map(({ id, name, vars }) => {
      const variables = vars.length === 0 ? '' : ` (MODEL_API_CLI_ENV=${vars.map((variable) => variable.name).join()})`;
      return `${name || id}${variables}`;
    });
    return ways.length === 0 ? '' : printable(`; ways to log in: ${ways.join('; ')}`).slice(0, maxLength);
  }

  #isUsable({ type, vars }: AuthMethod): boolean {
    return (
      type === 'env_var' &&
      vars.length > 0 &&
      vars.every(({ name, optional }) => optional === true || this.#given[name])
    );
  }
}
