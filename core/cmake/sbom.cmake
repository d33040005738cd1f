# The software bill of materials of a build, segue.spdx.json (SPDX 2.3): Segue, and in a
# bundled build each library that it contains, with the version, the licence and the
# SHA-256 of its archive from core/deps/archives.cmake. The same sources make the same
# bytes when SOURCE_DATE_EPOCH is set.
set(segue_sbom ${PROJECT_BINARY_DIR}/segue.spdx.json)
set(sbom_packages "")
set(sbom_relations "")

# sbom_package(NAME VERSION LICENCE URL SHA256): without SHA256 the package is Segue.
function(sbom_package name version licence url sha256)
    set(purl "pkg:generic/${name}@${version}")
    set(checksum "")
    set(relation "SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES")
    if(sha256)
        string(APPEND purl "?checksum=sha256:${sha256}")
        set(checksum "
      \"checksums\": [{\"algorithm\": \"SHA256\", \"checksumValue\": \"${sha256}\"}],")
        set(relation "SPDXRef-segue\", \"relationshipType\": \"CONTAINS")
    endif()
    string(APPEND sbom_packages ",
    {
      \"SPDXID\": \"SPDXRef-${name}\",
      \"name\": \"${name}\",
      \"versionInfo\": \"${version}\",
      \"downloadLocation\": \"${url}\",
      \"filesAnalyzed\": false,${checksum}
      \"licenseConcluded\": \"${licence}\",
      \"licenseDeclared\": \"${licence}\",
      \"copyrightText\": \"NOASSERTION\",
      \"externalRefs\": [{\"referenceCategory\": \"PACKAGE-MANAGER\",
        \"referenceType\": \"purl\", \"referenceLocator\": \"${purl}\"}]
    }")
    string(APPEND sbom_relations ",
    {\"spdxElementId\": \"${relation}\",
      \"relatedSpdxElement\": \"SPDXRef-${name}\"}")
    set(sbom_packages "${sbom_packages}" PARENT_SCOPE)
    set(sbom_relations "${sbom_relations}" PARENT_SCOPE)
endfunction()

sbom_package(segue ${PROJECT_VERSION} Apache-2.0 NOASSERTION "")
if(SEGUE_BUNDLED)
    include(${PROJECT_SOURCE_DIR}/core/deps/archives.cmake)
    foreach(name IN LISTS segue_archives)
        list(GET segue_archives_${name} 0 file)
        list(GET segue_urls_${file} 0 url)
        sbom_package(${name} ${segue_version_${name}} ${segue_licence_${name}} ${url}
            ${segue_sha256_${file}})
    endforeach()
endif()
string(SUBSTRING "${sbom_packages}" 1 -1 sbom_packages) # the first comma
string(SUBSTRING "${sbom_relations}" 1 -1 sbom_relations)
string(SHA256 sbom_hash "${sbom_packages}")
set(sbom_name segue-${PROJECT_VERSION})
string(TIMESTAMP sbom_time "%Y-%m-%dT%H:%M:%SZ" UTC)
file(CONFIGURE OUTPUT ${segue_sbom} @ONLY CONTENT "{
  \"spdxVersion\": \"SPDX-2.3\",
  \"dataLicense\": \"CC0-1.0\",
  \"SPDXID\": \"SPDXRef-DOCUMENT\",
  \"name\": \"${sbom_name}\",
  \"documentNamespace\": \"https://spdx.org/spdxdocs/${sbom_name}-${sbom_hash}\",
  \"creationInfo\": {
    \"created\": \"${sbom_time}\",
    \"creators\": [\"Tool: ${sbom_name}\"]
  },
  \"packages\": [${sbom_packages}
  ],
  \"relationships\": [${sbom_relations}
  ]
}
")
