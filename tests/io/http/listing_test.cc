#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <echopipe/io/http/lister.h>
#include <echopipe/io/http/listing.h>
#include <echopipe/io/http/uri.h>
#include <echopipe/tests/io/read_log.h>
#include <echopipe/tests/support/error_of.h>

namespace echopipe::testing {
namespace {

using internal::HttpDocument;
using internal::HttpLister;
using internal::HttpUri;
using internal::Manifest;
using internal::ParseIndexPage;
using internal::PercentDecode;
using internal::PercentEncode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Folders end in "/".
std::vector<std::string> Names(const std::vector<FolderEntry>& entries) {
  std::vector<std::string> names;
  for (const FolderEntry& entry : entries) {
    names.push_back(entry.name + (entry.kind == FolderEntry::Kind::kFolder ? "/" : ""));
  }
  return names;
}

TEST(HttpUriTest, IsTakenApartAndEncoded) {
  const HttpUri uri = HttpUri::Parse("HTTPS://Host.Example:8443/A b/%41?.jpg");
  EXPECT_EQ(uri.server, "https://host.example:8443");
  EXPECT_EQ(uri.path, "/A b/%41?.jpg");
  EXPECT_EQ(uri.Encoded(), "https://host.example:8443/A%20b/%2541%3F.jpg");
  EXPECT_EQ(HttpUri::Parse("http://h").Encoded(), "http://h/");
  EXPECT_EQ(HttpUri::Parse("http://[::1]:80/x").server, "http://[::1]:80");
}

TEST(HttpUriTest, WhatLeadsNowhereIsRefusedByName) {
  for (const char* uri :
       {"ftp://h/a", "http://", "http:///a", "http://h:/a", "http://h:0/a", "http://h:99999/a",
        "http://h:8x/a", "http://h h/a", "http://[::1/a", "http://h?a/b", "http://h\r\nX: y/"}) {
    EXPECT_THAT(ErrorOf([&] { HttpUri::Parse(uri); }).what(), HasSubstr(uri)) << uri;
  }
  EXPECT_THAT(ErrorOf([] { HttpUri::Parse("http://me:secret@h/a"); }).what(),
              ::testing::Not(HasSubstr("secret")));
}

TEST(PercentTest, DecodingTurnsEncodingBackForAllBytes) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(PercentDecode(PercentEncode(all)), all);
  EXPECT_EQ(PercentEncode("a/b-c_d.e~f"), "a/b-c_d.e~f");
  for (const char* bad : {"%", "%4", "%4g", "%-1", "a%"}) EXPECT_FALSE(PercentDecode(bad)) << bad;
}

TEST(ManifestTest, GivesWhatIsInEachFolder) {
  const Manifest manifest(
      "./b/2.jpg\nb/1.jpg\r\n\na-x/1.jpg\na/deep/er/1.jpg\na/z.jpg\nmanifest.txt\nb/1.jpg\ntop",
      "m");
  EXPECT_THAT(Names(*manifest.Entries("")), ElementsAre("a/", "a-x/", "b/", "top"));
  EXPECT_THAT(Names(*manifest.Entries("a/")), ElementsAre("deep/", "z.jpg"));
  EXPECT_THAT(Names(*manifest.Entries("a/deep/")), ElementsAre("er/"));
  EXPECT_THAT(Names(*manifest.Entries("b/")), ElementsAre("1.jpg", "2.jpg"));
  EXPECT_FALSE(manifest.Entries("c/"));
  EXPECT_FALSE(manifest.Entries("top/"));
  EXPECT_TRUE(manifest.HasFile("a/z.jpg"));
  EXPECT_FALSE(manifest.HasFile("a/z"));
}

TEST(ManifestTest, AByteOrderMarkIsNoPartOfAName) {
  EXPECT_TRUE(Manifest("\xef\xbb\xbf"
                       "a/1.jpg\n",
                       "m")
                  .HasFile("a/1.jpg"));
}

TEST(ManifestTest, ALineThatLeadsOutIsRefusedByItsNumber) {
  for (const std::string line :
       {"/etc/passwd", "../a", "a/../b", "a//b", "a/", "a/./b", "..", "./../a"}) {
    EXPECT_THAT(ErrorOf([&] { Manifest("ok\n" + line + "\n", "m"); }).what(),
                HasSubstr("m: line 2 "))
        << line;
  }
  EXPECT_THAT(ErrorOf([] { Manifest(std::string("a\0b", 3), "m"); }).what(), HasSubstr("line 1"));
  EXPECT_EQ(ErrorOf([] { Manifest("\n\r\n", "m"); }).code(), ErrorCode::kEmpty);
}

TEST(IndexPageTest, LinksOfKnownServersGiveTheEntries) {
  // nginx
  EXPECT_THAT(Names(ParseIndexPage("text/html",
                                   "<a href=\"../\">../</a>\n<a href=\"cat/\">cat/</a> 1-1\n"
                                   "<a href=\"a%20b%3F.jpg\">a b?.jpg</a>",
                                   "/photos/", "u")),
              ElementsAre("a b?.jpg", "cat/"));
  // Apache
  EXPECT_THAT(Names(ParseIndexPage("text/html;charset=UTF-8",
                                   "<A HREF=\"?C=N;O=D\">Name</A><a href=\"/\">Parent</a>"
                                   "<a href='x&amp;y.jpg'>x</a><a href=\"./a:b.jpg\">a</a>",
                                   "/photos/", "u")),
              ElementsAre("a:b.jpg", "x&y.jpg"));
  // Those that write whole paths
  EXPECT_THAT(Names(ParseIndexPage("text/html", "<a href = \"/photos/dog/\">", "/photos/", "u")),
              ElementsAre("dog/"));
}

TEST(IndexPageTest, LinksElsewhereArePassedOver) {
  EXPECT_THAT(
      ParseIndexPage("text/html",
                     "<a href=\"http://other/x\"><a href=\"/x\"><a href=\"a/b\"><a href=\"..\">"
                     "<a href=\"\"><a href=\"%2e%2e\"><a href=\"a%2Fb\"><a href=\"a%00b\">"
                     "<a href=\"#top\"><a href=\"javascript:x\"><a href=\"%zz\"><a href=\"x",
                     "/photos/", "u"),
      IsEmpty());
}

TEST(IndexPageTest, JsonListingsAreRead) {
  EXPECT_THAT(Names(ParseIndexPage("application/json",
                                   R"([{"name":"b c","type":"file"},{"name":"a","type":"directory"},
                                       {"name":"../x","type":"file"},{"name":"n"}])",
                                   "/", "u")),
              ElementsAre("a/", "b c", "n"));
  for (const char* page :
       {"{}", "[1]", "[{}]", "[{\"name\":1}]", "[", "", "[{\"name\":\"\xff\"}]"}) {
    EXPECT_EQ(ErrorOf([&] { ParseIndexPage("application/json", page, "/", "u"); }).code(),
              ErrorCode::kCorrupt)
        << page;
  }
}

// Texts by uri, and which were asked for.
struct FakeServer {
  std::map<std::string, std::string> texts = {};
  std::vector<std::string> asked = {};
  std::optional<Error> error = {};
  bool is_object = false;

  HttpLister Lister() {
    return HttpLister({.get = [this](const std::string& uri, uint64_t) -> Result<HttpDocument> {
                         asked.push_back(uri);
                         const auto text = texts.find(uri);
                         if (text != texts.end()) {
                           return HttpDocument{.body = text->second,
                                               .content_type = "text/html",
                                               .path = uri.substr(8)};
                         }
                         if (error) return *error;
                         return Error({.code = ErrorCode::kNotFound, .where = uri});
                       },
                       .is_object = [this](const std::string&) { return is_object; }});
  }
};

TEST(HttpListerTest, OneManifestAnswersForAllBelow) {
  FakeServer server{.texts = {{"http://h/p/manifest.txt", "a/1\nb/c/2\n"}}};
  HttpLister lister = server.Lister();
  EXPECT_THAT(Names(lister.List("http://h/p").value()), ElementsAre("a/", "b/"));
  EXPECT_THAT(Names(lister.List("http://h/p/a").value()), ElementsAre("1"));
  EXPECT_THAT(Names(lister.List("http://h/p/b/c/").value()), ElementsAre("2"));
  EXPECT_THAT(lister.List("http://h/p/x"), FailsWith(ErrorCode::kNotFound, "http://h/p/x"));
  EXPECT_THAT(lister.List("http://h/p/a/1"), FailsWith(ErrorCode::kIo, "not a folder"));
  EXPECT_THAT(server.asked, ElementsAre("http://h/p/manifest.txt"));
}

TEST(HttpListerTest, BelowAServersPageNoManifestIsAskedFor) {
  FakeServer server{
      .texts = {{"http://h/p/", "<a href=\"a/\">"}, {"http://h/p/a/", "<a href=\"1\">"}}};
  HttpLister lister = server.Lister();
  EXPECT_THAT(Names(lister.List("http://h/p").value()), ElementsAre("a/"));
  EXPECT_THAT(Names(lister.List("http://h/p/a").value()), ElementsAre("1"));
  EXPECT_THAT(server.asked, ElementsAre("http://h/p/manifest.txt", "http://h/p/", "http://h/p/a/"));
}

TEST(HttpListerTest, WithoutAPageAManifestAboveAnswersIfItKnowsTheFolder) {
  FakeServer server{.texts = {{"http://h/data/x/manifest.txt", "other/1\n"},
                              {"http://h/data/manifest.txt", "x/p/a/1\ny/2\n"}}};
  HttpLister lister = server.Lister();
  EXPECT_THAT(Names(lister.List("http://h/data/x/p").value()), ElementsAre("a/"));
  EXPECT_THAT(server.asked,
              ElementsAre("http://h/data/x/p/manifest.txt", "http://h/data/x/p/",
                          "http://h/data/x/manifest.txt", "http://h/data/manifest.txt"));
  EXPECT_THAT(Names(lister.List("http://h/data/y").value()), ElementsAre("2"));
  EXPECT_EQ(server.asked.size(), 4u);
  EXPECT_THAT(lister.List("http://h/"), FailsWith(ErrorCode::kNotFound, "http://h/"));
  EXPECT_EQ(server.asked.size(), 6u) << "nothing is above the server";
}

TEST(HttpListerTest, AboveEightLevelsNoManifestIsLookedFor) {
  FakeServer server;
  HttpLister lister = server.Lister();
  EXPECT_THAT(lister.List("http://h/1/2/3/4/5/6/7/8/9/10"), FailsWith(ErrorCode::kNotFound, "10"));
  EXPECT_EQ(server.asked.size(), 2u + 8u);
  EXPECT_EQ(server.asked.back(), "http://h/1/2/manifest.txt");
}

TEST(HttpListerTest, ErrorsAreNotTakenForAMissingManifest) {
  FakeServer server;
  server.texts["http://h/p/"] = "<a href=\"a/\">";
  server.error = Error({.code = ErrorCode::kIo, .what = "down"});
  HttpLister lister = server.Lister();
  EXPECT_THAT(lister.List("http://h/p"), FailsWith(ErrorCode::kIo, "down"));
}

TEST(HttpListerTest, AnObjectIsNoFolder) {
  FakeServer server;
  HttpLister lister = server.Lister();
  EXPECT_THAT(lister.List("http://h/p"), FailsWith(ErrorCode::kNotFound, "http://h/p"));
  server.is_object = true;
  EXPECT_THAT(lister.List("http://h/p"), FailsWith(ErrorCode::kIo, "not a folder"));
}

}  // namespace
}  // namespace echopipe::testing
