import { z } from 'zod';
import { jsonOf } from '../../primary/cli/adapters/common/lines.js';
import { type Consult, type Effort, filePlace } from '../../primary/cli/contract/adapter.js';
import { allEfforts } from '../../primary/cli/contract/model-rules.js';
import { cliError } from '../../shared/errors.js';
import { codexAnswers, configQuery } from './lines.js';
import type { DefaultEfforts } from './thread.js';

/** Settings that limit one version to answering. */
export interface CodexProfile {
  /** Arguments for all commands. `{file}` stands for the path of the catalog. */
  readonly args: readonly string[];
  readonly catalog: CodexCatalog;
}

/** Settings of the start. The program silently ignores unknown keys, so the result is checked afterwards. */
const settings = {
  web_search: 'disabled',
  project_doc_max_bytes: 0,
  include_environment_context: false,
  include_permissions_instructions: false,
  include_apps_instructions: false,
  include_collaboration_mode_instructions: false,
  'skills.include_instructions': false,
  'skills.bundled.enabled': false,
  'tools.experimental_request_user_input.enabled': false,
  'history.persistence': 'none',
  'analytics.enabled': false,
  check_for_update_on_startup: false,
} as const;

/** Settings that every version must support. The others save time, or keep data of the host from the vendor. */
const vital: readonly (keyof typeof settings)[] = [
  'web_search',
  'project_doc_max_bytes',
  'include_environment_context',
];

/** Features that stay listed as enabled but, without `shell_tool`, offer nothing. */
const harmless: ReadonlySet<string> = new Set(['unified_exec']);

/**
 * Finds settings that make this version inert, and proves the result: every enabled feature is switched off, and the
 * model's input must then be only the prompt. Throws `cli_error` if this is impossible. Calls no API.
 */
export async function findProfile(consult: Consult): Promise<CodexProfile> {
  const on = featuresOn(await print(consult, ['features', 'list']));
  const catalog = safeCatalog(await print(consult, ['debug', 'models', '--bundled']));
  if (catalog === null) throw unusable('does not list its models');
  const args = [
    ...on.flatMap((feature) => ['--disable', feature]),
    ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${JSON.stringify(value)}`]),
    ...['-c', `model_catalog_json="${filePlace}"`],
  ];
  const profile = { args, catalog };
  const left = featuresOn(await print(consult, ['features', 'list', ...args], catalog)).filter(
    (on) => !harmless.has(on),
  );
  if (left.length > 0) throw unusable(`does not switch off ${left.join(', ')}`);
  await proveSettings(consult, profile); // first, because printing a prompt starts MCP servers
  await provePrompt(consult, profile);
  return profile;
}

/** Returns the enabled features of a list with name, stage and state. Removed features have no effect. */
function featuresOn(stdout: string): readonly string[] {
  return stdout.split('\n').flatMap((line) => {
    const [, name, stage, state] = /^([a-z][\w.]*)\s+(\S.*?)\s+(true|false)\s*$/.exec(line) ?? [];
    return name !== undefined && state === 'true' && stage !== 'removed' ? [name] : [];
  });
}

const canary = 'a prompt of the trial';
const promptItem = z.object({
  type: z.literal('message'),
  role: z.literal('user'),
  content: z.tuple([z.object({ type: z.literal('input_text'), text: z.literal(canary) })]),
});

/**
 * Checks the printed model input, in which tools, instructions or files of the host would follow or precede the prompt.
 */
async function provePrompt(consult: Consult, { args, catalog }: CodexProfile): Promise<void> {
  const printed = jsonOf(await print(consult, ['debug', 'prompt-input', ...args, canary], catalog));
  if (!z.tuple([promptItem]).safeParse(printed).success) throw unusable('sends the model more than the prompt');
}

async function proveSettings(consult: Consult, { args, catalog }: CodexProfile): Promise<void> {
  const [answer] = await codexAnswers(consult, args, catalog.text, [configQuery]);
  const { data } = z.object({ config: z.record(z.string(), z.unknown()) }).safeParse(answer);
  if (data === undefined) throw unusable('does not report its configuration');
  const ignored = vital.filter((key) => data.config[key] !== settings[key]);
  if (ignored.length > 0) throw unusable(`ignores ${ignored.join(', ')}`);
  const servers = Object.keys((data.config.mcp_servers as object | null) ?? {});
  if (servers.length > 0) throw unusable(`has settings of this host that start MCP servers: ${servers.join(', ')}`);
}

async function print(consult: Consult, args: readonly string[], catalog?: CodexCatalog): Promise<string> {
  const { code, stdout } = await consult(args, '', undefined, catalog?.text);
  if (code !== 0) throw unusable(`does not answer ${args.slice(0, 2).join(' ')}`);
  return stdout;
}

function unusable(why: string) {
  return cliError('other', `this version of codex cannot be used safely: it ${why}`);
}

/**
 * List of models for the program. Its entries decide which tools a model gets, regardless of disabled features: code
 * execution, file patches, agents. So the program is started with a copy of its list that enables none of them.
 */
interface CodexCatalog {
  /** JSON in the form that the program reads. */
  readonly text: string;
  readonly defaultEfforts: DefaultEfforts;
  /** Efforts by the name of the model. */
  readonly efforts: ReadonlyMap<string, readonly Effort[]>;
}

const entry = z.looseObject({
  slug: z.string(),
  default_reasoning_level: z.string().nullish().catch(null),
  supported_reasoning_levels: z
    .array(z.looseObject({ effort: z.string() })) // the program reads the other fields of its list, too
    .optional()
    .catch(undefined),
});
const printed = z.object({ models: z.array(entry).min(1) });

/** Fields that describe how to call a model, but no tools. All other fields are dropped. */
const passedOn: ReadonlySet<string> = new Set([
  ...['slug', 'display_name', 'description', 'visibility', 'priority', 'supported_in_api', 'model_specialty'],
  ...['default_reasoning_level', 'supported_reasoning_levels', 'supports_reasoning_effort_updates'],
  ...['supports_reasoning_summaries', 'supports_reasoning_summary_parameter', 'default_reasoning_summary'],
  ...['support_verbosity', 'default_verbosity', 'additional_speed_tiers', 'service_tiers', 'default_service_tier'],
  ...['input_modalities', 'supports_image_detail_original', 'truncation_policy', 'use_responses_lite'],
  ...['effective_context_window_percent', 'comp_hash', 'minimal_client_version'],
]);

/**
 * Values for every entry. Without a context window, the program never replaces a conversation by a summary; the API
 * reports when it is too long. All other keys are mandatory.
 */
const safe = {
  base_instructions: '',
  model_messages: null,
  shell_type: 'disabled',
  apply_patch_tool_type: null,
  supports_search_tool: false,
  supports_parallel_tool_calls: false,
  experimental_supported_tools: [],
  context_window: null,
  max_context_window: null,
  availability_nux: null,
  upgrade: null,
};

/** Returns the catalog for the program's list of models; null if the text is not such a list. */
function safeCatalog(stdout: string): CodexCatalog | null {
  const { data } = printed.safeParse(jsonOf(stdout));
  if (data === undefined) return null;
  const models = data.models.map((model) => ({
    ...Object.fromEntries(Object.entries(model).filter(([key]) => passedOn.has(key))),
    ...safe,
  }));
  const defaults = data.models.flatMap(({ slug, default_reasoning_level: level }) =>
    level == null ? [] : [[slug, level] as const],
  );
  const efforts = data.models.flatMap(({ slug, supported_reasoning_levels: levels }) => {
    const names = levels?.map(({ effort }) => effort);
    return names === undefined ? [] : [[slug, allEfforts.filter((effort) => names.includes(effort))] as const];
  });
  return { text: JSON.stringify({ models }), defaultEfforts: new Map(defaults), efforts: new Map(efforts) };
}
