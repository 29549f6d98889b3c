import type { Adapter, Consult, Dialect, Launch, PrivateHome } from '../../contract/adapter.js';
import type { AcpPreset, GivenVariables } from './presets.js';
import { imageBlock } from './prompt.js';
import { type AgentQuery, askAgent, checkAgent, listModels } from './queries.js';
import { AcpSession } from './session.js';

export interface AcpOptions {
  readonly extraArgs: readonly string[];
  /** What the program sees of the service's environment. */
  readonly given: GivenVariables;
  /** Further files below HOME that are linked into the private one. */
  readonly homeFiles: readonly string[];
}

/** Any agent that speaks version 1 of the Agent Client Protocol: one process, one session, many turns. */
export function acpAdapter(
  name: string,
  preset: AcpPreset,
  command: readonly [program: string, ...args: string[]] | null,
  options: AcpOptions,
): Adapter {
  const [program, ...leading] = command ?? preset.command;
  const args = [...leading, ...preset.args, ...options.extraArgs];
  return {
    name,
    command: [program], // the other words may hold {model}, so they belong to the plan
    credentialVariable: null,
    env: preset.env,
    home: homeOf(preset, options),
    models: null,
    ...(preset.modelForm !== undefined && { modelForm: preset.modelForm }),
    learn: (consult) => learn(consult, args, { given: options.given, mode: preset.mode ?? null }),
  };
}

function homeOf({ folders, files, credentials }: AcpPreset, { given, homeFiles }: AcpOptions): PrivateHome {
  const written = Object.entries(files(given)).map(([path, text]) => ({ path, text }));
  const linked = given.HOME === undefined ? [] : [...credentials, ...homeFiles];
  return { variables: folders, files: written, links: linked.map((path) => ({ path, to: `${given.HOME}/${path}` })) };
}

async function learn(consult: Consult, args: readonly string[], settings: AgentQuery['settings']): Promise<Dialect> {
  const queryWith = (consult: Consult): AgentQuery => ({ consult, args: argsFor(args, null), settings });
  const { agentInfo, agentCapabilities } = await askAgent(queryWith(consult));
  const choosesModel = !args.some(holdsModel);
  return {
    version: agentInfo?.version ?? null,
    extras: agentCapabilities?.promptCapabilities?.image === true ? { image: imageBlock } : {},
    plan: ({ model }: Launch) => ({ args: argsFor(args, model), files: [] }),
    dialogue: () => {
      const session = new AcpSession(choosesModel);
      const opening = (workingDirectory: string) => session.open({ ...settings, workingDirectory });
      return { writer: session, decoder: session, opening };
    },
    check: (consult) => checkAgent(queryWith(consult)),
    listModels: (consult) => listModels(queryWith(consult)),
  };
}

const modelPlace = '{model}';

function holdsModel(arg: string | undefined): boolean {
  return arg?.includes(modelPlace) === true;
}

/** Where no model is named, an argument that holds its place is left out, with the flag before it. */
function argsFor(args: readonly string[], model: string | null): readonly string[] {
  if (model !== null) return args.map((arg) => arg.replaceAll(modelPlace, model));
  return args.filter((arg, index) => !holdsModel(arg) && !(arg.startsWith('-') && holdsModel(args[index + 1])));
}
