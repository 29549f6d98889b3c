import { added, type Difference, type Fields, leftOut } from '../../support/doors/typed-answers.js';

const has = (name: string) => (value: object) => Object.hasOwn(value, name);
const isResponse = ({ object, output }: Fields) => object === 'response' && output !== undefined;
const isBatch = ({ object }: Fields) => object === 'batch';
const isErrorEvent = (value: Fields) => value.type === 'error' && has('sequence_number')(value);
const usageFields = { output_tokens_details: null, server_tool_use: null };
const messageUsage = { cache_creation: null, inference_geo: null, service_tier: null, speed: null };
const lastLine = ['total_duration', 'load_duration', 'prompt_eval_count', 'prompt_eval_duration', 'eval_count'];

const timesOfBatch = ['in_progress', 'finalizing', 'completed', 'failed', 'expired', 'cancelling', 'cancelled'];
const modelFields = ['alias_of', 'capabilities', 'max_input_tokens', 'max_tokens'];
const isShown = (value: Fields) => has('model_info')(value);

/** Differences between our answers and the types of the newest SDKs. */
export const differences: readonly Difference[] = [
  added(
    'Open servers give thoughts so in a chat, and their clients read them',
    has('reasoning_content'),
    'reasoning_content',
  ),
  leftOut('The SDK itself adds it', isResponse, { output_text: '' }),
  added('The examples of the API have it', isResponse, 'store'),
  added('The examples of the API have it', ({ type }) => type === 'custom_tool_call', 'status'),
  added('Open Responses has them', isResponse, 'frequency_penalty', 'presence_penalty'),
  added(
    'Open Responses has null',
    (value) => value.type === 'json_schema' && value.description === null,
    'description',
  ),
  added('The examples of the API have null', (value) => isResponse(value) && value.usage === null, 'usage'),
  added('Older SDKs find the error one level down', isErrorEvent, 'error'),
  leftOut('Newer SDKs find the error of the event `response.failed`', isErrorEvent, {
    code: null,
    message: '',
    param: null,
  }),
  {
    why: 'The service has failures that the API has not, with codes of their own',
    change: ({ status, error }) =>
      status === 'failed' && Object.assign(error as object, { code: 'server_error' }) !== null,
  },
  added('Earlier types have it', ({ type }) => type === 'response.function_call_arguments.done', 'name'),
  leftOut('The API leaves it out, and AI SDK 5 and 6 refuse null', isTextBlock, { citations: null }),
  leftOut('The model CLI does not report it', has('cache_read_input_tokens'), { ...usageFields, ...messageUsage }),
  {
    why: 'The usage at the end of a stream has fewer fields',
    change: ({ type, usage }) =>
      type === 'message_delta' && Object.keys(messageUsage).every((name) => delete (usage as Fields)[name]),
  },
  leftOut('It is of the API alone', (value) => value.type === 'message' && has('container')(value), {
    diagnostics: null,
  }),
  leftOut('The types are those of the last line', ({ done }) => done === false, {
    ...Object.fromEntries(lastLine.map((name) => [name, 0])),
    ...{ eval_duration: 0, done_reason: '' },
  }),
  added('Ollama has it, and its types lack it', (value) => has('arguments')(value) && has('name')(value), 'index'),
  added('Ollama has it, and its types lack it', isOllamaCall, 'id'),
  leftOut('The types are those of running models', has('digest'), { expires_at: '', size_vram: 0 }),
  leftOut('Ollama leaves out what is empty', isShown, { license: '', system: '', messages: [] }),
  leftOut('Ollama leaves it out of most lines', isGenerated, { context: [] }),
  withoutNulls('The examples of the API have null', isBatch, [
    ...['errors', 'output_file_id', 'error_file_id'],
    ...timesOfBatch.map((name) => `${name}_at`),
  ]),
  added(
    'It is what every answer of a background job has',
    (value) => isResponse(value) && value.background === true,
    'job_id',
    'durable',
    'request_id',
  ),
  added('A model has more here', ({ object }) => object === 'model', ...modelFields),
  added('A model has more here', ({ type }) => type === 'model', 'description', 'alias_of'),
  added(
    'The API has them, and the types of the SDK lack them',
    (value) => Object.keys(value).join() === 'annotations',
    'annotations',
  ),
  added('Older SDKs read the pages of files by them', has('next_page'), 'has_more', 'first_id', 'last_id'),
];

function isGenerated({ done, message }: Fields): boolean {
  return done !== undefined && message === undefined;
}

/** Fields that the types have only with a value. */
function withoutNulls(why: string, fits: Difference['change'], names: readonly string[]): Difference {
  const change = (value: Fields) => {
    const empty = fits(value) ? names.filter((name) => value[name] === null) : [];
    return empty.map((name) => delete value[name]).length > 0;
  };
  return { why, change };
}

function isTextBlock({ type, text, annotations }: Fields): boolean {
  return type === 'text' && typeof text === 'string' && annotations === undefined;
}

function isOllamaCall(value: Fields): boolean {
  const { arguments: input } = Object(value.function) as Fields;
  return has('id')(value) && typeof input === 'object';
}
