import Anthropic, { toFile as anthropicFile } from '@anthropic-ai/sdk';
import OpenAI, { toFile } from 'openai';

const pause = () => new Promise((resolve) => setTimeout(resolve, 100));

function openAiOf({ url, key, fetch }) {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: key, fetch, maxRetries: 0 });
}

function anthropicOf({ url, key, fetch }) {
  return new Anthropic({ baseURL: url, apiKey: key, fetch, maxRetries: 0 });
}

export function describeFailure({ status, code, type, error, message, name }) {
  return { name, status, code: code ?? null, type: type ?? error?.error?.type, message };
}

/** Returns the objects in lines of JSON. */
function linesOf(text) {
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

const openai = {
  /** Uploads prompts, runs them as a batch of this endpoint, and removes everything that can be removed. */
  async batch(input) {
    const client = openAiOf(input);
    const { endpoint } = input.extra;
    const bodyOf = (prompt) =>
      endpoint === '/v1/responses'
        ? { model: input.model, input: prompt }
        : { model: input.model, messages: [{ role: 'user', content: prompt }] };
    const lines = input.said.map((prompt, index) =>
      JSON.stringify({ custom_id: `line ${index}`, method: 'POST', url: endpoint, body: bodyOf(prompt) }),
    );
    const bytes = Buffer.from([...lines, 'no JSON'].join('\n'));
    const file = await client.files.create({ file: await toFile(bytes, 'prompts.jsonl'), purpose: 'batch' });
    await client.files.waitForProcessing(file.id, { pollInterval: 100 });
    let batch = await client.batches.create({
      input_file_id: file.id,
      endpoint,
      completion_window: '24h',
      metadata: { of: 'a test' },
    });
    while (batch.status === 'validating' || batch.status === 'in_progress') {
      await pause();
      batch = await client.batches.retrieve(batch.id);
    }
    const answers = linesOf(await (await client.files.content(batch.output_file_id)).text());
    const errors = linesOf(await (await client.files.content(batch.error_file_id)).text());
    const listed = await Array.fromAsync(client.batches.list({ limit: 1 }));
    const files = await Array.fromAsync(client.files.list({ limit: 1 }));
    const { deleted } = await client.files.delete(file.id);
    return {
      status: batch.status,
      counts: batch.request_counts,
      ids: answers.map((line) => line.custom_id).toSorted(),
      objects: [...new Set(answers.map(({ response }) => response.body.object))],
      errors: errors.map(({ response }) => response.status_code),
      isListed: listed.some(({ id }) => id === batch.id) && files.some(({ id }) => id === file.id),
      deleted,
    };
  },

  async cancel(input) {
    const client = openAiOf(input);
    const lines = Array.from({ length: 200 }, (_, index) => {
      const body = { model: input.model, messages: [{ role: 'user', content: 'Hello' }] };
      return JSON.stringify({ custom_id: `${index}`, method: 'POST', url: '/v1/chat/completions', body });
    });
    const file = await toFile(Buffer.from(lines.join('\n')), 'prompts.jsonl');
    const { id: input_file_id } = await client.files.create({ file, purpose: 'batch' });
    const order = { input_file_id, endpoint: '/v1/chat/completions', completion_window: '24h' };
    let batch = await client.batches.cancel((await client.batches.create(order)).id);
    while (batch.status === 'cancelling') {
      await pause();
      batch = await client.batches.retrieve(batch.id);
    }
    const { total, completed, failed } = batch.request_counts;
    return { status: batch.status, isWhole: completed + failed === total };
  },

  /** Asks about an uploaded document, continues after its deletion, and refers to it once more. */
  async document(input) {
    const client = openAiOf(input);
    const file = await toFile(Buffer.from(input.said[0]), 'invoice.txt');
    const { id: file_id } = await client.files.create({ file, purpose: 'user_data' });
    const chatContent = [
      { type: 'file', file: { file_id } },
      { type: 'text', text: 'Which sum?' },
    ];
    const chat = { model: 'echo', messages: [{ role: 'user', content: chatContent }] };
    const inputContent = [
      { type: 'input_file', file_id },
      { type: 'input_text', text: 'Which sum?' },
    ];
    const answer = await client.chat.completions.create(chat);
    const order = { model: 'echo', input: [{ role: 'user', content: inputContent }] };
    const response = await client.responses.create(order);
    await client.files.delete(file_id);
    const next = { model: 'echo', input: 'And when?', previous_response_id: response.id };
    const { output_text: continued } = await client.responses.create(next);
    const { name } = await client.chat.completions.create(chat).catch((error) => error.constructor);
    return { texts: [answer.choices[0].message.content, response.output_text], continued, refused: name };
  },

  /** Asks for a file that does not exist. */
  missing: (input) => openAiOf(input).files.retrieve('file-missing'),
};

const anthropic = {
  async batch(input) {
    const client = anthropicOf(input);
    const params = { model: input.model, max_tokens: 1024, messages: [{ role: 'user', content: 'Hello' }] };
    const requests = input.said.map((content, index) => ({
      custom_id: `line-${index}`,
      params: { ...params, messages: [{ role: 'user', content }] },
    }));
    requests.push({ custom_id: 'bad', params: { ...params, messages: [] } });
    let batch = await client.messages.batches.create({ requests });
    while (batch.processing_status !== 'ended') {
      await pause();
      batch = await client.messages.batches.retrieve(batch.id);
    }
    const results = await Array.fromAsync(await client.messages.batches.results(batch.id));
    const listed = await Array.fromAsync(client.messages.batches.list({ limit: 1 }));
    const { type } = await client.messages.batches.delete(batch.id);
    return {
      counts: batch.request_counts,
      results: results
        .map(({ custom_id, result }) => [custom_id, result.type, result.message?.content[0].type ?? null])
        .toSorted(),
      isListed: listed.some(({ id }) => id === batch.id),
      type,
    };
  },

  async cancel(input) {
    const client = anthropicOf(input);
    const params = { model: input.model, max_tokens: 1024, messages: [{ role: 'user', content: 'Hello' }] };
    const requests = Array.from({ length: 200 }, (_, index) => ({ custom_id: `line-${index}`, params }));
    const made = await client.messages.batches.create({ requests });
    let batch = await client.messages.batches.cancel(made.id);
    while (batch.processing_status !== 'ended') {
      await pause();
      batch = await client.messages.batches.retrieve(batch.id);
    }
    const { processing, canceled, succeeded } = batch.request_counts;
    return { processing, isWhole: canceled + succeeded === 200, isCancelled: canceled > 0 };
  },

  async file(input) {
    const client = anthropicOf(input);
    const { files } = client;
    const upload = async (name) => {
      const file = await anthropicFile(Buffer.from('bytes'), name, { type: 'text/plain' });
      return files.upload({ file, expires_in_seconds: 3600 });
    };
    const [file] = [await upload('a.txt'), await upload('b.txt')];
    const listed = await Array.fromAsync(files.list({ limit: 1 }));
    const ofBeta = await Array.fromAsync(client.beta.files.list({ limit: 1 }));
    const text = await (await files.download(file.id)).text();
    const { type } = await files.delete(file.id);
    return {
      name: file.filename,
      bytes: file.size_bytes,
      lifeSeconds: (Date.parse(file.expires_at) - Date.parse(file.created_at)) / 1000,
      isListed: [listed, ofBeta].every((page) => page.some(({ id }) => id === file.id)),
      text,
      type,
    };
  },

  /** Asks about an uploaded document, counts its tokens, and refers to it after its deletion. */
  async document(input) {
    const client = anthropicOf(input);
    const { files, messages } = client.beta;
    const betas = ['files-api-2025-04-14'];
    const file = await files.upload({ file: await anthropicFile(Buffer.from(input.said[0]), 'invoice.txt'), betas });
    const document = { type: 'document', source: { type: 'file', file_id: file.id } };
    const content = [document, { type: 'text', text: 'Which sum?' }];
    const body = { model: 'echo', messages: [{ role: 'user', content }], betas };
    const { content: blocks } = await messages.create({ ...body, max_tokens: 1024 });
    const { input_tokens } = await messages.countTokens(body);
    await files.delete(file.id);
    const { name } = await messages.create({ ...body, max_tokens: 1024 }).catch((error) => error.constructor);
    return { text: blocks[0].text, hasTokens: input_tokens > 5, refused: name };
  },

  missing: (input) => anthropicOf(input).messages.batches.retrieve('msgbatch_missing'),
};

export const faces = { openai, anthropic };
