// Sends requests to a service through one generation of the AI SDK, with each provider for each purpose. Prints a line
// of JSON for each.

globalThis.AI_SDK_LOG_WARNINGS = false;
const [url, generation, image] = process.argv.slice(2);
const [sdk, { createAnthropic }, { createOpenAI }, { createOpenAICompatible }] = await Promise.all(
  ['ai', 'anthropic', 'openai', 'compatible'].map((name) => import(`${name}${generation}`)),
);
const { generateText, generateObject, streamText, tool, jsonSchema } = sdk;

const options = { baseURL: `${url}/v1`, apiKey: 'any' };
const openai = createOpenAI({ ...options, compatibility: 'strict' });
const reasoning = 'o3'; // an alias here; the provider enables thoughts only for such a model
const providers = {
  anthropic: createAnthropic(options)('eliza'),
  openai: openai(reasoning),
  'openai.chat': openai.chat('eliza'),
  compatible: createOpenAICompatible({ ...options, name: 'relay', supportsStructuredOutputs: true })('eliza'),
};

const schema = jsonSchema({
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer' } },
  required: ['name', 'age'],
  additionalProperties: false,
});
const thinking = {
  anthropic: { thinking: { type: 'enabled', budgetTokens: 2000 } },
  openai: { reasoningEffort: 'low', reasoningSummary: 'auto', forceReasoning: true },
  relay: { reasoningEffort: 'low' },
};

const textOf = (reasoning) => (Array.isArray(reasoning) ? reasoning.map(({ text }) => text).join('') : reasoning);

const purposes = {
  text: async (ask) => (await generateText({ ...ask, prompt: 'Hello, my name is Ada' })).text,

  async stream(ask) {
    const failures = [];
    const result = streamText({
      ...ask,
      prompt: 'Hello, my name is Ada',
      onError: ({ error }) => failures.push(error),
    });
    let text = '';
    for await (const part of result.textStream) text += part;
    if (failures.length > 0) throw failures[0];
    return text;
  },

  object: async (ask) => (await generateObject({ ...ask, schema, prompt: 'Who is it?' })).object,

  async tools(ask) {
    const note = {
      description: 'Notes a person.',
      parameters: schema,
      inputSchema: schema,
      execute: async ({ name }) => `noted ${name}`,
    };
    const loop = generation === '4' ? { maxSteps: 3 } : { stopWhen: sdk.stepCountIs(3) };
    const prompt = 'call note {"name": "Ada", "age": 36}';
    const { steps, text } = await generateText({ ...ask, ...loop, tools: { note: tool(note) }, prompt });
    return { text, results: steps.flatMap(({ toolResults }) => toolResults.map((each) => each.output ?? each.result)) };
  },

  async thinking(ask) {
    const result = await generateText({ ...ask, prompt: 'Hello\nthink of Ada', providerOptions: thinking });
    return { text: result.text, thought: textOf(result.reasoning) };
  },

  async images(ask) {
    const data = Buffer.from(image.slice(image.indexOf(',') + 1), 'base64');
    const shown = generation === '7' ? { type: 'file', data, mediaType: 'image/png' } : { type: 'image', image: data };
    const content = [{ type: 'text', text: 'What is it?' }, shown];
    return (await generateText({ ...ask, messages: [{ role: 'user', content }] })).text;
  },
};

for (const [provider, model] of Object.entries(providers)) {
  for (const [purpose, run] of Object.entries(purposes)) {
    const outcome = await run({ model, maxRetries: 0 }).then(
      (value) => ({ value }),
      (error) => ({ failure: `${error.name}: ${error.message} ${error.cause?.message ?? ''}`.slice(0, 400) }),
    );
    process.stdout.write(`${JSON.stringify({ provider, purpose, ...outcome })}\n`);
  }
}
process.exit();
