// Prints the faults of workflow files. The arguments are the folder of the linter and the files.
const [linter, ...paths] = process.argv.slice(2);
require(linter).createLinter().then(lint => {
  const faults = paths.flatMap(path => lint(require('fs').readFileSync(path, 'utf8'), path));
  // The linter is older than the labels of some machines, so it cannot judge them.
  const found = faults.filter(fault => fault.kind !== 'runner-label');
  found.forEach(({file, line, column, message}) => console.log(`${file}:${line}:${column}: ${message}`));
  process.exit(found.length ? 1 : 0);
});
