#!/usr/bin/env node
// An invented agent, as an example of a program for an adapter: it speaks JSON lines and remembers what it is told.
// In: {op:'hello'}, {op:'models'}, {op:'say', id, model, system, past, text}, {op:'no', id}.
// Out: {op:'ready'}, {op:'models', models}, {op:'piece', id, text}, {op:'done', id, words}, {op:'fail', id, why, text},
// and {op:'may-i', id, what}, which it waits to be answered.
const mood = process.argv.find((word) => word.startsWith('--mood='))?.slice('--mood='.length);
const models = ['jay-large', 'jay-small'];
const heard = [];
let isGreeted = false;
let asking = null;

function tell(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function answer({ id, model, system, past, text }) {
  const fail = (why, words) => tell({ op: 'fail', id, why, text: words });
  if (!isGreeted) return fail('other', 'I was not greeted');
  if (mood === 'busy') return fail('busy', 'I have too much to do');
  if (mood === 'login') return fail('login', 'log in first');
  if (mood === 'silent') return;
  if (model !== null && !models.includes(model)) return fail('unknown-model', `there is no ${model}`);
  if (text === 'crash') process.exit(3);
  if (text === 'wait') return tell({ op: 'piece', id, text: 'Wait … ' });
  if (text.startsWith('run ')) {
    asking = { id, model, text };
    return tell({ op: 'may-i', id: 'q1', what: 'shell' });
  }
  heard.push(...past.filter(({ who }) => who === 'user').map((message) => message.text), text);
  const tone = system === null ? '' : `(${system}) `;
  say(id, model, `${tone}I have heard: ${heard.join(' / ')}`, text);
}

function say(id, model, words, text) {
  const pieces = words.match(/\S+\s*|\s+/g) ?? [];
  for (const piece of pieces) tell({ op: 'piece', id, text: piece });
  const counts = { in: text.split(/\s+/).length, out: pieces.length };
  tell({ op: 'done', id, model: model ?? models[0], words: counts });
}

function hear(line) {
  const message = JSON.parse(line);
  if (message.op === 'hello') {
    isGreeted = true;
    tell({ op: 'ready', agent: 'jay' });
  } else if (message.op === 'models') tell({ op: 'models', models });
  else if (message.op === 'say') answer(message);
  else if (message.op === 'no' && asking !== null) say(asking.id, asking.model, 'I may not.', asking.text);
}

process.stdout.on('error', () => process.exit(0));
if (process.argv.includes('--version')) process.stdout.write('jay 0.3.1\n');
else require('node:readline').createInterface({ input: process.stdin }).on('line', hear);
