import { defineConfig } from "vitepress";
import { siteLink, slug, sourceUrl } from "../links.ts";
import { sidebar } from "../sidebar.ts";

// The folder under which the site is served, such as "/leasehold/".
const base = (process.env.SITE_BASE ?? "/") as "/";

export default defineConfig({
  title: "Leasehold",
  description: "A serverless lease lock on DynamoDB, for TypeScript.",
  lang: "en",
  base,
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${base}logo.svg` }]],
  srcDir: "pages",
  outDir: "dist",
  cleanUrls: true,
  lastUpdated: false,
  rewrites: (page) => page.replace(/README\.md$/, "index.md"),
  markdown: {
    anchor: { slugify: slug },
    config: (md) => {
      md.core.ruler.push("site-links", ({ tokens, env }) => {
        const page = String((env as { relativePath?: string }).relativePath);
        // TypeDoc's links are right as they are.
        if (page.startsWith("api/")) return;
        for (const token of tokens.flatMap(({ children }) => children ?? [])) {
          const href = token.attrGet("href");
          if (token.type === "link_open" && href !== null) token.attrSet("href", siteLink(page, href));
        }
      });
    },
  },
  // The search index is one chunk.
  vite: { build: { chunkSizeWarningLimit: 4_000 } },
  themeConfig: {
    logo: { src: "/logo.svg", alt: "" },
    nav: [
      { text: "Docs", link: "/quick-start", activeMatch: "^/(?!api/|$)" },
      { text: "API", link: "/api/" },
    ],
    socialLinks: [{ icon: "github", link: sourceUrl }],
    footer: { message: "MIT licence" },
    sidebar: sidebar().map((group) => ({ ...group, items: [...(group.items ?? [])] })) as never,
    outline: { level: [2, 3] },
    // In the browser, over an index that is built with the site.
    search: { provider: "local" },
    editLink: { pattern: `${sourceUrl}/edit/main/docs/:path`, text: "Edit this page" },
  },
});
