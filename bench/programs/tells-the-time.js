// A program with claude's protocol. Every answer is the time of its write, in nanoseconds of the monotonic clock.
const help =
  '--print --input-format --output-format --verbose --tools --strict-mcp-config --setting-sources --settings ' +
  '--include-partial-messages';

const model = 'clock';
const usage = {
  input_tokens: 1,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 1,
};

function write(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function answer() {
  write({ type: 'stream_event', event: { type: 'message_start', message: { model } } });
  const text = String(process.hrtime.bigint());
  write({
    type: 'stream_event',
    event: { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
  });
  write({ type: 'assistant', message: { model, content: [{ type: 'text', text }] } });
  write({ type: 'result', subtype: 'success', is_error: false, num_turns: 1, result: text, total_cost_usd: 0, usage });
}

function converse() {
  let rest = '';
  process.stdin.setEncoding('utf8').on('data', (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    for (const line of lines) if (JSON.parse(line).type === 'user') answer();
  });
}

const [first] = process.argv.slice(2);
if (first === '--version') process.stdout.write('1.0.0 (a clock)\n');
else if (first === '--help') process.stdout.write(`${help}\n`);
else if (first === 'auth') process.stdout.write('{"loggedIn":true}\n');
else converse();
