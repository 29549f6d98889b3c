// A program that answers with ten megabytes of text, as fast as stdout accepts them.
const piece = `${'The sky is blue because air scatters short waves more. '.repeat(1200).slice(0, 65_535)}\n`;
let left = 10 * 1024 * 1024;

function write() {
  while (left > 0) {
    const text = piece.slice(0, left);
    left -= text.length;
    if (!process.stdout.write(text)) return void process.stdout.once('drain', write);
  }
}

process.stdin.resume().on('end', write);
