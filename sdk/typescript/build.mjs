// Compiles src/ twice: to ES modules in dist/esm, and to CommonJS in dist/cjs.
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";

const compile = (...options) =>
    execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", ...options], {
        stdio: "inherit",
    });

rmSync("dist", { recursive: true, force: true });
compile();
compile("--module", "commonjs", "--outDir", "dist/cjs");
writeFileSync("dist/cjs/package.json", '{ "type": "commonjs" }\n');
const { version } = JSON.parse(readFileSync("package.json", "utf8"));
for (const file of ["dist/esm/client.js", "dist/cjs/client.js"]) {
    writeFileSync(file, readFileSync(file, "utf8").replace("VERSION_OF_PACKAGE", version));
}
