/** Styles the report: light and dark, from 320 px up. */
export const PAGE_STYLE = `
:root{color-scheme:light dark;--page:#fff;--ink:#1b1f24;--soft:#5b6570;--grid:#e3e7eb;--card:#f7f8fa;--series-1:#2563c9;--series-2:#c2540a}
@media (prefers-color-scheme:dark){:root{--page:#14171b;--ink:#e7eaee;--soft:#9aa5b1;--grid:#2b3138;--card:#1b1f25;--series-1:#6ea8ff;--series-2:#ffab6b}}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1040px;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.5rem;margin:0 0 .5rem;overflow-wrap:anywhere}h2{font-size:1.15rem;margin:2.5rem 0 .75rem}
p,.empty{color:var(--soft);max-width:70ch}code{font-size:.9em;overflow-wrap:anywhere}
.scroll{overflow-x:auto}table{border-collapse:collapse;margin:1rem 0;font-variant-numeric:tabular-nums}.cards{width:100%}
caption{text-align:left;color:var(--soft);font-size:.9em;padding-bottom:.4rem}
th,td{padding:.35rem .9rem;text-align:right;vertical-align:top;border-bottom:1px solid var(--grid)}.cards th,.cards td{padding:.35rem .5rem}thead th{vertical-align:bottom}
th[scope=row],.name{text-align:left;overflow-wrap:anywhere}th[scope=row]{min-width:4rem}
td .figure,td .m,td .p,td .v{display:block}td .m,td .p,td .v{color:var(--soft);font-size:.85em;white-space:nowrap}td em{font-style:normal}
dl{color:var(--soft);display:grid;grid-template-columns:auto 1fr;gap:.2rem 1rem;max-width:75ch}dd{margin:0}summary{cursor:pointer}
.advice{padding-left:1.25rem;max-width:75ch}.advice li{margin:.6rem 0}.advice strong{display:block}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:1rem}
figure{margin:0;padding:1rem;background:var(--card);border:1px solid var(--grid);border-radius:10px}
figcaption{font-weight:600;margin-bottom:.4rem;display:flex;flex-wrap:wrap;gap:.3rem 1rem;justify-content:space-between}
.legend{font-weight:400;color:var(--soft);display:flex;flex-wrap:wrap;gap:0 .9rem}.key{display:flex;align-items:center;gap:.35rem}
.key i{width:.8rem;height:.2rem;border-radius:1px;background:currentColor}
.key .s1,.s1{color:var(--series-1)}.key .s2,.s2{color:var(--series-2)}
svg{width:100%;height:auto;display:block}.grid{stroke:var(--grid)}.guide{stroke:var(--soft);stroke-dasharray:4 4}
.tick,.label{fill:var(--soft);font-size:11px}.label{font-size:12px}
.dots circle{fill:currentColor;fill-opacity:.35}.line path{fill:none;stroke:currentColor;stroke-width:2}.line circle{fill:currentColor}
@media (max-width:1000px){
.cards thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.cards,.cards :is(caption,tbody,tr,th,td){display:block}
.cards tbody tr{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,8.5rem),1fr));border:1px solid var(--grid);border-radius:10px;margin:.75rem 0;padding:.5rem}
.cards :is(th,td){border:0;text-align:left;padding:.3rem .4rem}.cards th[scope=row]{grid-column:1/-1}.cards th+th[scope=row]{padding-top:0;font-weight:400}
.cards td::before{content:attr(data-label);display:block;color:var(--soft);font-size:.85em}}
@media (max-width:500px){main{padding:1.25rem .75rem 3rem}figure{padding:.5rem}.tick{font-size:16px}.label{font-size:17px}}
`;
